// caf_backend [--device=NAME] [--serve [--port=N]] [doctest options]: what CAF promises of remote
// actors, on the named device.
#define DOCTEST_CONFIG_IMPLEMENT
#include "support/key_file.hpp"
#include "systems.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <doctest/doctest.h>
#include <optional>
#include <string_view>
#include <troupe/transport/open_device.hpp>

int main(int argc, char** argv) {
  unsetenv("TROUPE_DEVICE"); // it would override the device under test
  std::string device = "soft";
  auto serve = false;
  uint16_t port = 0;
  for (int i = 1; i < argc; ++i) {
    std::string_view text{argv[i]};
    if (text.starts_with("--device="))
      device = text.substr(9);
    if (text.starts_with("--port="))
      port = static_cast<uint16_t>(std::strtoul(text.data() + 7, nullptr, 10));
    serve = serve || text == "--serve";
  }
  auto& subject = caf_backend::under_test();
  subject = {device, "127.0.0.1"};
  std::optional<support::key_for_tests> key;
  if (device.starts_with("verbs:")) {
    auto all = troupe::transport::list_devices();
    auto found = std::find_if(all.begin(), all.end(), [&](auto& it) { return it.name == device; });
    if (found == all.end() || !found->usable) {
      std::printf("skipped: %s is not there or not usable%s%s\n", device.c_str(),
                  found == all.end() ? "" : ": ", found == all.end() ? "" : found->detail.c_str());
      return 77;
    }
    subject.address = found->address;
    key.emplace();
  } else {
    unsetenv("TROUPE_KEY_FILE"); // this machine's own devices are tested without a key too
  }
  if (serve)
    return caf_backend::serve(port);
  std::printf("device under test: %s at %s\n", subject.device.c_str(), subject.address.c_str());
  return doctest::Context{argc, argv}.run();
}
