#include "row.hpp"

namespace bench {

effort context::usual() const {
  using namespace std::chrono_literals;
  return quick ? effort{1ms, 5ms, 2} : effort{100ms, 400ms, 3};
}

std::unique_ptr<child> context::start_peer(const std::string& role,
                                           std::vector<std::string> arguments, int inherit) const {
  std::vector<std::string> argv{this_program(), "serve", "--address", address, "--device", device};
  if (spinning)
    argv.emplace_back("--spinning");
  argv.insert(argv.end(), {role, column});
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return std::make_unique<child>(std::move(argv), inherit);
}

} // namespace bench
