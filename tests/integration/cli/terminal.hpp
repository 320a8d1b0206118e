// `troupe` on a terminal of its own: what a person would see and type.
#pragma once

#include <string>
#include <sys/types.h>
#include <vector>

namespace cli_test {

/// Kills the program when destroyed. Every wait fails the test after `support::patience`.
class terminal {
public:
  explicit terminal(const std::vector<std::string>& words,
                    const std::vector<std::string>& environment = {});
  ~terminal();
  terminal(const terminal&) = delete;
  terminal& operator=(const terminal&) = delete;

  void type(const std::string& keys) const;

  /// Waits until `text` is on the screen, behind what was expected before.
  /// @returns what came up to its end.
  std::string expect(const std::string& text);

  /// Waits until the program ends. @returns its exit code, or 128 + signal.
  int wait();

private:
  pid_t id_ = -1;
  int screen_ = -1;
  std::string seen_;
};

} // namespace cli_test
