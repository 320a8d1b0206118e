// conformance [--device=NAME] [--forbid-process-vm] [doctest options]: what every device must do,
// over the named one.
#define DOCTEST_CONFIG_IMPLEMENT
#include "forbid.hpp"
#include "rig.hpp"
#include "role.hpp"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

// The value of `--name=value` among the arguments, or `otherwise`.
std::string option(int argc, char** argv, std::string_view name, std::string otherwise) {
  for (int i = 1; i < argc; ++i) {
    std::string_view text{argv[i]};
    if (text.starts_with("--") && text.substr(2).starts_with(name) &&
        text.substr(2 + name.size()).starts_with("="))
      return std::string{text.substr(3 + name.size())};
  }
  return otherwise;
}

} // namespace

int main(int argc, char** argv) {
  // It would override the device under test.
  unsetenv("TROUPE_DEVICE");
  auto from_environment = std::getenv("TROUPE_CONFORMANCE_DEVICE");
  auto device = option(argc, argv, "device", from_environment ? from_environment : "soft");
  conformance::choose_subject(device);
  if (auto role = option(argc, argv, "role", ""); !role.empty())
    return conformance::play_role(role, option(argc, argv, "argument", ""));
  for (int i = 1; i < argc; ++i) {
    if (std::string_view{argv[i]} == "--forbid-process-vm" && !conformance::forbid_process_vm()) {
      std::printf("skipped: this system has no seccomp filters\n");
      return 77;
    }
  }
  doctest::Context context{argc, argv};
  const auto& reason = conformance::under_test().unusable_reason;
  if (!reason.empty()) {
    std::printf("skipped: %s\n", reason.c_str());
    return 77;
  }
  std::printf("device under test: %s at %s\n", device.c_str(),
              conformance::under_test().address.c_str());
  return context.run();
}
