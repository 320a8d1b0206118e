#include "troupe/framework/suggest.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace troupe {

namespace {

// Longer texts are no typing mistakes of a name of ours, and the distance costs the product of both
// lengths.
constexpr size_t longest_name = 128;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

} // namespace

size_t edit_distance(std::string_view lhs, std::string_view rhs) {
  // Rows of the usual table: the one being filled and the two before it.
  std::vector<size_t> two_before(rhs.size() + 1), before(rhs.size() + 1), row(rhs.size() + 1);
  for (size_t j = 0; j <= rhs.size(); ++j)
    before[j] = j;
  for (size_t i = 1; i <= lhs.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= rhs.size(); ++j) {
      auto a = lower(lhs[i - 1]);
      auto b = lower(rhs[j - 1]);
      row[j] = std::min({before[j] + 1, row[j - 1] + 1, before[j - 1] + (a == b ? 0u : 1u)});
      if (i > 1 && j > 1 && a == lower(rhs[j - 2]) && b == lower(lhs[i - 2]))
        row[j] = std::min(row[j], two_before[j - 2] + 1);
    }
    std::swap(two_before, before);
    std::swap(before, row);
  }
  return before[rhs.size()];
}

std::string nearest(std::string_view name, std::span<const std::string> candidates) {
  if (name.size() > longest_name)
    return {};
  auto allowed = std::max<size_t>(1, name.size() / 3);
  const std::string* best = nullptr;
  for (auto& candidate : candidates) {
    auto distance = edit_distance(name, candidate);
    // Something of the name must have been kept.
    if (distance > allowed || distance >= std::max(name.size(), candidate.size()))
      continue;
    if (!best || distance < edit_distance(name, *best))
      best = &candidate;
  }
  return best ? *best : std::string{};
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  auto found = nearest(name, candidates);
  return found.empty() ? found : "; did you mean '" + found + "'?";
}

} // namespace troupe
