#include "table.hpp"

#include "format.hpp"

#include <algorithm>

namespace troupe::cli {

namespace {

constexpr std::string_view gap = "  ";

std::string_view code_of(tint colour) {
  switch (colour) {
  case tint::good:
    return "\x1b[32m";
  case tint::busy:
    return "\x1b[33m";
  case tint::bad:
    return "\x1b[31m";
  case tint::faint:
    return "\x1b[2m";
  case tint::none:
    break;
  }
  return {};
}

} // namespace

std::string paint(std::string_view text, tint colour) {
  auto code = code_of(colour);
  if (code.empty() || text.empty())
    return std::string{text};
  return std::string{code} + std::string{text} + "\x1b[0m";
}

tint tint_of_state(std::string_view state) {
  if (state == "alive" || state == "succeeded")
    return tint::good;
  if (state == "running" || state == "suspect")
    return tint::busy;
  if (state == "dead" || state == "failed")
    return tint::bad;
  if (state == "left" || state == "cancelled")
    return tint::faint;
  return tint::none;
}

void table::add(std::vector<cell> row) {
  row.resize(columns_.size(), cell{""});
  for (auto& each : row)
    each.text = printable(each.text);
  rows_.push_back(std::move(row));
}

std::string table::render(bool colours) const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    auto width = display_width(columns_[i].title);
    for (auto& row : rows_)
      width = std::max(width, display_width(row[i].text));
    widths.push_back(width);
  }
  std::string text;
  auto append = [&](size_t i, const std::string& content, tint colour) {
    std::string padding(widths[i] - display_width(content), ' ');
    auto shown = colours ? paint(content, colour) : content;
    auto last = i + 1 == columns_.size();
    if (i > 0)
      text += gap;
    text += columns_[i].right ? padding + shown : shown + (last ? "" : padding);
  };
  auto end_line = [&] {
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  };
  for (size_t i = 0; i < columns_.size(); ++i)
    append(i, columns_[i].title, tint::none);
  end_line();
  for (auto& row : rows_) {
    for (size_t i = 0; i < columns_.size(); ++i)
      append(i, row[i].text, row[i].colour);
    end_line();
  }
  return text;
}

} // namespace troupe::cli
