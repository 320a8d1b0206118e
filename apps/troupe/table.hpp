// Aligned columns under a header, and states in colour.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::cli {

enum class tint : uint8_t { none, good, busy, bad, faint };

/// `text` between the terminal's codes for `colour`; unchanged for `tint::none`.
std::string paint(std::string_view text, tint colour);

/// The colour of a job's, task's or node's state.
tint tint_of_state(std::string_view state);

struct column {
  std::string title;
  bool right = false; ///< aligned to the right, as numbers are
};

struct cell {
  cell(std::string t, tint c = tint::none) : text(std::move(t)), colour(c) {}

  std::string text;
  tint colour = tint::none;
};

class table {
public:
  explicit table(std::vector<column> columns) : columns_(std::move(columns)) {}

  /// Adds a row of as many cells as there are columns; control characters are spelled out.
  void add(std::vector<cell> row);

  bool empty() const noexcept { return rows_.empty(); }

  /// Header and rows, a line each, two blanks between columns, none at the end of a line.
  std::string render(bool colours) const;

private:
  std::vector<column> columns_;
  std::vector<std::vector<cell>> rows_;
};

} // namespace troupe::cli
