#include "troupe/version.hpp"

namespace troupe {

std::string_view version() noexcept {
  return TROUPE_VERSION;
}

} // namespace troupe
