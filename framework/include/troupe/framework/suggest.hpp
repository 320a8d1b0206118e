// "Did you mean ...?" for names that people type.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// The least number of insertions, deletions, replacements and swaps of neighbours (each of one
/// byte, ASCII case ignored) that turn `lhs` into `rhs`, where no byte is touched twice.
size_t edit_distance(std::string_view lhs, std::string_view rhs);

/// The candidate nearest to `name`, the first of equals; empty when none is near enough to be what
/// was meant (more than a third of `name`'s bytes differ, one byte being always allowed).
std::string nearest(std::string_view name, std::span<const std::string> candidates);

/// `; did you mean 'worker.cpus'?`, to be put behind an error text; empty when nothing is near.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

} // namespace troupe
