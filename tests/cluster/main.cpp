// cluster_e2e [--device=NAME] [doctest options]: whole clusters of real processes, on the named
// device.
#define DOCTEST_CONFIG_IMPLEMENT
#include "subject.hpp"
#include "support/child_process.hpp"
#include "support/key_file.hpp"

#include "troupe/transport/open_device.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <doctest/doctest.h>
#include <optional>
#include <string_view>

namespace cluster_test {

subject& under_test() {
  static subject it;
  return it;
}

} // namespace cluster_test

int main(int argc, char** argv) {
  constexpr int skipped = 77;
  constexpr std::chrono::seconds loaded{90}; // other tests may run beside this one
  constexpr std::chrono::minutes emulated{10};
  support::be_patient_for(loaded);
  unsetenv("TROUPE_DEVICE"); // it would override the device under test
  auto& subject = cluster_test::under_test();
  std::optional<support::key_for_tests> key;
  for (int i = 1; i < argc; ++i) {
    std::string_view word{argv[i]};
    constexpr std::string_view device_option = "--device=";
    if (word.starts_with(device_option))
      subject.device = word.substr(device_option.size());
  }
  if (subject.device.starts_with("verbs:")) {
    auto all = troupe::transport::list_devices();
    auto found =
        std::find_if(all.begin(), all.end(), [&](auto& it) { return it.name == subject.device; });
    if (found == all.end() || !found->usable) {
      std::printf("skipped: %s is not there or not usable%s%s\n", subject.device.c_str(),
                  found == all.end() ? "" : ": ", found == all.end() ? "" : found->detail.c_str());
      return skipped;
    }
    subject.address = found->address;
    key.emplace();
    support::be_patient_for(emulated); // the guest's processor may be
  } else {
    unsetenv("TROUPE_KEY_FILE"); // tests make their own keys here
  }
  std::printf("device under test: %s at %s\n", subject.device.c_str(), subject.address.c_str());
  return doctest::Context{argc, argv}.run();
}
