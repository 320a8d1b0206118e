// Runs the tests of the suite that --suite names: `local` needs no device, `controller` needs the
// one that --device names. With --serve this is the controller that they talk to.
#define DOCTEST_CONFIG_IMPLEMENT
#include "controller.hpp"
#include "subject.hpp"

#include "troupe/transport/open_device.hpp"

#include <cstdio>
#include <cstdlib>
#include <doctest/doctest.h>
#include <string_view>

namespace cli_test {

std::string& device_under_test() {
  static std::string name = "soft";
  return name;
}

} // namespace cli_test

int main(int argc, char** argv) {
  constexpr int skipped = 77;
  constexpr int serve_arguments = 4;
  using namespace cli_test;
  if (argc == serve_arguments && std::string_view{argv[1]} == "--serve")
    return serve(argv[2], static_cast<uint16_t>(std::atoi(argv[3])));
  doctest::Context context{argc, argv};
  for (int i = 1; i < argc; ++i) {
    std::string_view word{argv[i]};
    constexpr std::string_view device_option = "--device=";
    if (!word.starts_with(device_option))
      continue;
    device_under_test() = word.substr(device_option.size());
    if (auto opened = troupe::transport::open_device(device_under_test()); !opened) {
      std::printf("skipped: %s\n", opened.error().text().c_str());
      return skipped;
    }
  }
  return context.run();
}
