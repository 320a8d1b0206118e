// channel_e2e [--device=NAME] [--with-namespaces] [doctest options]: what a channel does, over the
// named device; the second option says that the tests will make network namespaces.
// channel_e2e --device=NAME --address=HOST --role WORD...: the second process, see role.hpp.
#define DOCTEST_CONFIG_IMPLEMENT
#include "role.hpp"
#include "streams.hpp"
#include "support/key_file.hpp"
#include "unreachable.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <doctest/doctest.h>
#include <string_view>
#include <troupe/transport/open_device.hpp>

int main(int argc, char** argv) {
  unsetenv("TROUPE_DEVICE");  // it would override the device under test
  support::key_for_tests key; // for second processes too
  auto& subject = channel_test::under_test();
  subject = {"soft", "127.0.0.1"};
  bool namespaces = false;
  for (int i = 1; i < argc; ++i) {
    std::string_view text{argv[i]};
    if (text.starts_with("--device="))
      subject.device = text.substr(9);
    else if (text.starts_with("--address="))
      subject.address = text.substr(10);
    else if (text == "--with-namespaces")
      namespaces = true;
    else if (text == "--role")
      return channel_test::play_role({argv + i + 1, argv + argc});
  }
  if (subject.device.starts_with("verbs:")) {
    auto all = troupe::transport::list_devices();
    auto found =
        std::find_if(all.begin(), all.end(), [&](auto& it) { return it.name == subject.device; });
    if (found == all.end() || !found->usable) {
      std::printf("skipped: %s is not there or not usable%s%s\n", subject.device.c_str(),
                  found == all.end() ? "" : ": ", found == all.end() ? "" : found->detail.c_str());
      return 77;
    }
    subject.address = found->address;
  }
  if (auto why = namespaces ? channel_test::why_no_namespaces() : std::string{}; !why.empty()) {
    std::printf("skipped: %s\n", why.c_str());
    return 77;
  }
  std::printf("device under test: %s at %s\n", subject.device.c_str(), subject.address.c_str());
  return doctest::Context{argc, argv}.run();
}
