// What a measurement gives.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench {

/// One measurement of one cell: named values with their unit in the name, the one that the row is
/// about first. Or the reason why there are none.
struct sample {
  std::vector<std::pair<std::string, double>> values;
  std::string remark;  ///< shown under the table; may stand beside values
  std::string failure; ///< when set, the cell shows it and `values` do not count
  std::string skipped; ///< why this machine cannot measure it; `values` do not count

  void set(std::string_view name, double value) { values.emplace_back(name, value); }

  static sample failed(std::string why);
  static sample skip(std::string why);

  /// As one line of JSON, from one process to another.
  std::string to_line() const;
  static sample from_line(const std::string& line);
};

} // namespace bench
