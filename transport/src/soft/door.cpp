#include "soft/listening.hpp"
#include "troupe/transport/log.hpp"

#include <cerrno>
#include <cstdio>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace troupe::transport::soft {

namespace {

constexpr int backlog = 512;

} // namespace

/// A connection through the door that has not shown its ticket yet.
class door::claimant final : public watcher {
public:
  claimant(door& at, descriptor socket, pid_t process)
      : at_(at), socket_(std::move(socket)), process_(process),
        deadline_(steady_clock::now() + handshake_patience) {}

  ~claimant() override {
    at_.device_.forget(socket_.get());
    at_.device_.forget_deadline(*this);
  }

  bool begin() {
    if (!at_.device_.watch(socket_.get(), EPOLLIN, *this))
      return false;
    at_.device_.await_deadline(*this);
    return true;
  }

  void on_ready(int, uint32_t) override { at_.claimed(*this); }
  std::optional<steady_clock::time_point> deadline() const override { return deadline_; }
  void on_deadline() override { at_.claimants_.erase(this); }

  int socket() const noexcept { return socket_.get(); }
  pid_t process() const noexcept { return process_; }
  descriptor take_socket() {
    at_.device_.forget(socket_.get());
    return std::move(socket_);
  }

private:
  door& at_;
  descriptor socket_;
  pid_t process_;
  steady_clock::time_point deadline_;
};

result<std::shared_ptr<door>> door::open(std::shared_ptr<context> device) {
  descriptor socket{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (!socket)
    return fail(system_error("opening a Unix socket", errno));
  std::array<char, 32> name{};
  uint64_t number = 0;
  auto random = make_token();
  std::memcpy(&number, random.data(), sizeof number);
  std::snprintf(name.data(), name.size(), "troupe-%016llx",
                static_cast<unsigned long long>(number));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(socket.get(), backlog) != 0)
    return fail(system_error("listening on a Unix socket", errno));
  int fd = socket.get();
  auto made = std::make_shared<door>(*device, std::move(socket), name);
  if (auto watched = device->watch(fd, EPOLLIN, *made); !watched)
    return fail(watched.error());
  return made;
}

door::door(context& device, descriptor socket, std::array<char, 32> name)
    : device_(device), socket_(device, std::move(socket)), name_(name) {}

door::~door() {
  claimants_.clear();
  device_.forget(socket_.fd());
  device_.forget_deadline(*this);
}

void door::on_ready(int, uint32_t) {
  auto accepted = socket_.take(*this);
  if (!accepted)
    return;
  auto peer = identity_of_peer(accepted.get());
  if (!peer || peer->user != here().user) {
    log_for("soft")->warn("refused shared memory with a process of another user");
    return;
  }
  auto made = std::make_unique<claimant>(*this, std::move(accepted), peer->process);
  auto who = made.get();
  if (who->begin())
    claimants_[who] = std::move(made);
}

void door::claimed(claimant& by) {
  claim question;
  local_message message;
  auto outcome =
      receive_message(by.socket(), std::as_writable_bytes(std::span{&question, 1}), message);
  if (outcome == local_outcome::nothing)
    return;
  auto process = by.process();
  auto socket = by.take_socket();
  claimants_.erase(&by);
  if (outcome == local_outcome::ended)
    return;
  auto found = message.length == sizeof question && question.start.valid()
                   ? expected_.find(question.ticket)
                   : expected_.end();
  if (found == expected_.end()) {
    log_for("soft")->warn("dropped process {}: it asked for a connection that nobody opened",
                          process);
    return;
  }
  found->second->claimed(std::move(socket), process, question, std::move(message));
}

} // namespace troupe::transport::soft
