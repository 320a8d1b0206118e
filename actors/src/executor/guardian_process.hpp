// The guardian as a child of this process.
#pragma once

#include "troupe/actors/unique_fd.hpp"
#include "troupe/transport/error.hpp"

#include <filesystem>
#include <string>
#include <sys/types.h>

namespace troupe::cluster {

/// A running guardian, or one that has died but was not reaped. Destroying it hangs up, lets the
/// guardian kill all tasks, waits for its end, and kills it if that takes too long.
class guardian_process {
public:
  static result<guardian_process> spawn(const std::filesystem::path& program);

  guardian_process(guardian_process&&) = default;
  guardian_process& operator=(guardian_process&&) = delete;
  ~guardian_process();

  pid_t process() const noexcept { return process_; }
  int socket() const noexcept { return socket_.get(); } ///< SOCK_SEQPACKET
  int pidfd() const noexcept { return pidfd_.get(); }   ///< readable when it has died

  /// Kills it if it should still live, reaps it, and closes all descriptors.
  /// @returns how it died, in words.
  std::string bury();

private:
  guardian_process(pid_t process, unique_fd socket, unique_fd pidfd)
      : process_(process), socket_(std::move(socket)), pidfd_(std::move(pidfd)) {}

  pid_t process_;
  unique_fd socket_;
  unique_fd pidfd_;
};

} // namespace troupe::cluster
