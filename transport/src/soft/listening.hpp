// The accepting side of connection set-up.
#pragma once

#include "soft/context.hpp"
#include "soft/handshake.hpp"
#include "soft/local_socket.hpp"

#include <map>

namespace troupe::transport::soft {

class door;
class visitor;

/// A listening socket that rests for a moment when the process has run out of descriptors: the
/// connection that cannot be taken would otherwise be reported over and over.
class accepting {
public:
  accepting(context& device, descriptor socket) : device_(device), socket_(std::move(socket)) {}

  int fd() const noexcept { return socket_.get(); }

  /// Takes the next connection, if there is one. `who` watches the socket.
  descriptor take(watcher& who);
  void resume(watcher& who);
  std::optional<steady_clock::time_point> resume_at() const noexcept { return resume_at_; }

private:
  context& device_;
  descriptor socket_;
  std::optional<steady_clock::time_point> resume_at_;
};

/// Listens on a TCP port. Peers on this host are offered `local` too, unless it is null.
class soft_listener final : public listener, public watcher {
public:
  static result<std::unique_ptr<listener>> open(std::shared_ptr<context> device,
                                                std::shared_ptr<door> local, const endpoint& where);

  soft_listener(std::shared_ptr<context> device, std::shared_ptr<door> local, descriptor socket);
  ~soft_listener() override;

  endpoint local() const override { return local_end(); }

  void on_ready(int descriptor, uint32_t events) override;
  std::optional<steady_clock::time_point> deadline() const override { return socket_.resume_at(); }
  void on_deadline() override { socket_.resume(*this); }

  /// A peer has asked for a connection.
  void announce(std::unique_ptr<connection_request> request);
  void remove(visitor& who);

private:
  endpoint local_end() const;

  std::shared_ptr<context> device_;
  std::shared_ptr<door> local_;
  accepting socket_;
  std::map<visitor*, std::unique_ptr<visitor>> visitors_;
};

/// The Unix socket of a device, by which peers on this host pass memory.
class door final : public watcher {
public:
  static result<std::shared_ptr<door>> open(std::shared_ptr<context> device);

  door(context& device, descriptor socket, std::array<char, 32> name);
  ~door() override;

  const std::array<char, 32>& name() const noexcept { return name_; }

  /// `who` may be claimed with `ticket` from now on.
  void expect(const token& ticket, visitor& who) { expected_[ticket] = &who; }
  void forget(const token& ticket) { expected_.erase(ticket); }

  void on_ready(int descriptor, uint32_t events) override;
  std::optional<steady_clock::time_point> deadline() const override { return socket_.resume_at(); }
  void on_deadline() override { socket_.resume(*this); }

private:
  class claimant;

  void claimed(claimant& by);

  context& device_;
  accepting socket_;
  std::array<char, 32> name_;
  std::map<token, visitor*> expected_;
  std::map<claimant*, std::unique_ptr<claimant>> claimants_;
};

/// A TCP connection that has not said yet what it wants.
class visitor final : public watcher {
public:
  visitor(std::shared_ptr<context> device, soft_listener& at, std::shared_ptr<door> local,
          descriptor socket);
  ~visitor() override;

  /// Greets. @returns false when the connection is dead already.
  bool greet();

  /// It has come through the door, with `question`.
  void claimed(descriptor life_line, pid_t peer, const claim& question, local_message message);

  void on_ready(int descriptor, uint32_t events) override;
  std::optional<steady_clock::time_point> deadline() const override { return deadline_; }
  void on_deadline() override;

private:
  void drop(const char* reason);

  std::shared_ptr<context> device_;
  soft_listener& at_;
  std::shared_ptr<door> local_;
  descriptor socket_;
  endpoint peer_;
  token ticket_;
  steady_clock::time_point deadline_;
  request_message question_;
  size_t have_ = 0;
};

} // namespace troupe::transport::soft
