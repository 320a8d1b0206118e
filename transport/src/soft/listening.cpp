#include "soft/listening.hpp"

#include "soft/request.hpp"
#include "soft/socket_address.hpp"
#include "troupe/transport/log.hpp"

#include <cerrno>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace troupe::transport::soft {

namespace {

// How long nothing is accepted once the process has run out of descriptors.
constexpr std::chrono::milliseconds pause_time{100};

} // namespace

descriptor accepting::take(watcher& who) {
  descriptor taken{accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
  if (taken || (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM))
    return taken;
  log_for("soft")->warn("{}; trying again shortly (raise the limit of open files if this goes on)",
                        system_error("accepting a connection", errno).text());
  device_.change(socket_.get(), 0, who);
  resume_at_ = steady_clock::now() + pause_time;
  device_.await_deadline(who);
  return taken;
}

void accepting::resume(watcher& who) {
  resume_at_.reset();
  device_.change(socket_.get(), EPOLLIN, who);
}

// -- listener -------------------------------------------------------------------------------------

result<std::unique_ptr<listener>> soft_listener::open(std::shared_ptr<context> device,
                                                      std::shared_ptr<door> local,
                                                      const endpoint& where) {
  auto socket = open_listener(where);
  if (!socket)
    return fail(socket.error());
  int fd = socket->get();
  auto made = std::make_unique<soft_listener>(device, std::move(local), std::move(*socket));
  if (auto watched = device->watch(fd, EPOLLIN, *made); !watched)
    return fail(watched.error());
  return made;
}

soft_listener::soft_listener(std::shared_ptr<context> device, std::shared_ptr<door> local,
                             descriptor socket)
    : device_(std::move(device)), local_(std::move(local)), socket_(*device_, std::move(socket)) {}

soft_listener::~soft_listener() {
  visitors_.clear();
  device_->forget(socket_.fd());
  device_->forget_deadline(*this);
  device_->drop_events_of(this);
}

endpoint soft_listener::local_end() const {
  return soft::local_end(socket_.fd());
}

void soft_listener::on_ready(int, uint32_t) {
  auto accepted = socket_.take(*this);
  if (!accepted)
    return;
  auto made = std::make_unique<visitor>(device_, *this, local_, std::move(accepted));
  auto who = made.get();
  if (who->greet())
    visitors_[who] = std::move(made);
}

void soft_listener::announce(std::unique_ptr<connection_request> request) {
  connection_event event;
  event.what = connection_event::kind::requested;
  event.source = this;
  event.request = std::move(request);
  device_->push(std::move(event));
}

void soft_listener::remove(visitor& who) {
  visitors_.erase(&who);
}

// -- visitor --------------------------------------------------------------------------------------

visitor::visitor(std::shared_ptr<context> device, soft_listener& at, std::shared_ptr<door> local,
                 descriptor socket)
    : device_(std::move(device)), at_(at), local_(std::move(local)), socket_(std::move(socket)),
      peer_(remote_end(socket_.get())), ticket_(make_token()),
      deadline_(steady_clock::now() + handshake_patience) {
  if (local_)
    local_->expect(ticket_, *this);
}

visitor::~visitor() {
  if (local_)
    local_->forget(ticket_);
  device_->forget(socket_.get());
  device_->forget_deadline(*this);
}

bool visitor::greet() {
  tune(socket_.get());
  greeting hello;
  hello.place = here();
  if (local_) {
    hello.socket = local_->name();
    hello.ticket = ticket_;
  }
  // A new connection takes this much at once.
  if (send(socket_.get(), &hello, sizeof hello, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof hello)
    return false;
  if (!device_->watch(socket_.get(), EPOLLIN, *this))
    return false;
  device_->await_deadline(*this);
  return true;
}

void visitor::on_ready(int, uint32_t) {
  auto rest = std::as_writable_bytes(std::span{&question_, 1}).subspan(have_);
  auto got = recv(socket_.get(), rest.data(), rest.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (got <= 0) {
    // Also what a client does that was claimed elsewhere or gave up.
    at_.remove(*this);
    return;
  }
  have_ += static_cast<size_t>(got);
  if (have_ < sizeof question_)
    return;
  if (!question_.start.valid()) {
    drop("does not speak this protocol");
    return;
  }
  device_->forget(socket_.get());
  at_.announce(make_tcp_request(device_, peer_, question_.start, std::move(socket_)));
  at_.remove(*this);
}

void visitor::claimed(descriptor life_line, pid_t peer, const claim& question,
                      local_message message) {
  auto made =
      make_shared_request(device_, peer_, question, std::move(life_line), peer, std::move(message));
  // When that did not work, the client was told so and goes on over TCP.
  if (!made)
    return;
  at_.announce(std::move(made));
  at_.remove(*this);
}

void visitor::on_deadline() {
  drop("did not say what it wants in time");
}

void visitor::drop(const char* reason) {
  log_for("soft")->warn("dropped {}: it {}", to_string(peer_), reason);
  at_.remove(*this);
}

} // namespace troupe::transport::soft
