// What a command has to work with: the console, the controller, the surroundings of its caller.
#pragma once

#include "client.hpp"
#include "console.hpp"
#include "interrupts.hpp"
#include "settings.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::cli {

/// How the program ends. `wait` and `submit --wait` end with the job's outcome instead, when they
/// get to know it.
namespace exit_code {
constexpr int ok = 0;
constexpr int refused = 1; ///< the cluster said no, or what was asked for is not there
constexpr int usage = 2;
constexpr int no_controller = 3; ///< none there, lost, or it does not answer
constexpr int interrupted = 130;
} // namespace exit_code

/// One thread.
class session {
public:
  /// `environment` is the caller's, as NAME=value. `lasting`: a shell, which connects again when
  /// the controller was lost.
  session(console& out, interrupts& stop, connection_options options,
          std::vector<std::string> environment, bool lasting);

  console& out() noexcept { return out_; }
  interrupts& stop() noexcept { return stop_; }
  const connection_options& options() const noexcept { return options_; }
  const std::vector<std::string>& environment() const noexcept { return environment_; }
  std::string device() const { return find_device(options_, environment_); }

  /// The connection, made now if there is none. Valid until the next call.
  answer<client*> controller();

  /// Whether there is a connection that was not lost.
  bool connected() const { return client_ && !client_->lost(); }

  /// Asks the controller and waits for the answer.
  template <class Request>
  answer<answer_to<Request>> ask(Request request, patience limit = usual_patience) {
    auto connection = controller();
    if (!connection)
      return tl::unexpected<failure>(connection.error());
    return (*connection)->ask(std::move(request), limit, stop_);
  }

  /// Tells the user.
  /// @returns the exit code that belongs to it.
  int report(const failure& problem);

private:
  console& out_;
  interrupts& stop_;
  connection_options options_;
  std::vector<std::string> environment_;
  bool lasting_;
  std::unique_ptr<client> client_;
};

} // namespace troupe::cli
