#pragma once

#include <string_view>

namespace troupe {

/// The release, "major.minor.patch".
std::string_view version() noexcept;

} // namespace troupe
