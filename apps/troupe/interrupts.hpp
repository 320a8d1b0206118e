// Ctrl-C as something that can be waited for.
#pragma once

namespace troupe::cli {

/// While one lives, SIGINT makes `fd` readable instead of ending the process, and SIGPIPE is
/// ignored. One at a time.
class interrupts {
public:
  interrupts();
  ~interrupts();
  interrupts(const interrupts&) = delete;
  interrupts& operator=(const interrupts&) = delete;

  /// To be watched for input. Owned by this object; -1 when the system gave none: then SIGINT ends
  /// the process as usual.
  int fd() const noexcept { return fd_; }

  /// Whether SIGINT has come since the last `clear`.
  bool raised() const;

  /// Forgets it.
  void clear();

private:
  int fd_ = -1;
};

} // namespace troupe::cli
