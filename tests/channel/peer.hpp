// A second process in a role of role.hpp, and a channel to it.
#pragma once

#include "streams.hpp"
#include "support/child_process.hpp"

namespace channel_test {

constexpr size_t kib = 1024;
constexpr size_t mib = 1024 * kib;

/// A process in a role: `before` stands before its program ("unshare"), `address` is where it
/// listens.
support::launch in_role(const std::string& role, const std::vector<uint64_t>& arguments,
                        const std::string& address, const std::vector<std::string>& before = {});

/// The port that it prints first.
uint16_t port_of(support::child_process& process);

class peer {
public:
  /// Starts it and connects `here` to it.
  peer(node& here, const std::string& role, const std::vector<uint64_t>& arguments);

  support::child_process& process() noexcept { return process_; }

private:
  support::child_process process_;

public:
  std::unique_ptr<channel> stream;
};

/// Sends `bytes` in segments, short and long ones mixed.
void send_mixed(channel& to, uint64_t bytes);

/// Closes the channel, and checks what the process has read.
void check_has_read(node& here, peer& other, uint64_t bytes);

/// Sends a little to a process that receives, which must get it.
void check_goes_on(node& here, peer& other);

} // namespace channel_test
