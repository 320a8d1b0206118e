// Sizes and durations as people write them: "8GiB", "500ms", "1h30m".
#pragma once

#include "troupe/transport/error.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// Reads a size: digits with at most six decimals, then nothing (bytes), `B`, `K`, `KiB`, `M`,
/// `MiB`, `G`, `GiB`, `T`, `TiB` (powers of 1024) or `KB`, `MB`, `GB`, `TB` (powers of 1000), in
/// either case, with or without a space between.
/// @returns bytes, rounded down; `errc::invalid_argument` with a text that quotes the input.
result<uint64_t> parse_size(std::string_view text);

/// `bytes` in the largest binary unit of which there is at least one, with one decimal where that
/// says more: "512B", "7.8GiB". `parse_size` reads it back, whole multiples exactly.
std::string format_size(uint64_t bytes);

/// Reads a duration: one or more of digits with at most six decimals and a unit out of `ns`, `us`,
/// `ms`, `s`, `m` (or `min`), `h`: "500ms", "1.5s", "1h30m". The unit may be left out of a mere 0.
/// @returns `errc::invalid_argument` with a text that quotes the input.
result<std::chrono::nanoseconds> parse_duration(std::string_view text);

/// `length` for people, with up to three decimals below a minute: "500ms", "1.25s", "2m5s",
/// "1h3m". `parse_duration` reads it back.
std::string format_duration(std::chrono::nanoseconds length);

} // namespace troupe
