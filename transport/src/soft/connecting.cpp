#include "soft/connecting.hpp"

#include "soft/pair.hpp"
#include "soft/request.hpp"
#include "soft/socket_address.hpp"
#include "troupe/transport/log.hpp"

#include <cerrno>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace troupe::transport::soft {

void connecting::begin(std::shared_ptr<context> device, pair& made, const endpoint& remote,
                       bool may_share, byte_view private_data, std::chrono::milliseconds timeout) {
  auto setup = std::make_unique<connecting>(device, made, remote, may_share, private_data,
                                            steady_clock::now() + timeout);
  auto& who = *setup;
  device->keep(std::move(setup));
  made.set_connecting(&who);
  if (who.start())
    device->await_deadline(who);
}

connecting::connecting(std::shared_ptr<context> device, pair& made, const endpoint& remote,
                       bool may_share, byte_view private_data, steady_clock::time_point deadline)
    : device_(std::move(device)), pair_(made), remote_(remote), may_share_(may_share),
      deadline_(deadline) {
  start_.set(private_data);
}

connecting::~connecting() {
  device_->forget_deadline(*this);
  if (socket_)
    device_->forget(socket_.get());
  if (local_)
    device_->forget(local_.get());
}

// @returns whether there is something to wait for; otherwise this is gone.
bool connecting::start() {
  auto address = resolve(remote_, false);
  if (!address) {
    failed(address.error());
    return false;
  }
  socket_ = descriptor{::socket(address->storage.ss_family,
                                SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP)};
  if (!socket_) {
    failed(system_error(what(), errno));
    return false;
  }
  if (::connect(socket_.get(), address->get(), address->size) != 0 && errno != EINPROGRESS) {
    failed(system_error(what(), errno));
    return false;
  }
  if (auto watched = device_->watch(socket_.get(), EPOLLOUT, *this); !watched) {
    failed(watched.error());
    return false;
  }
  return true;
}

void connecting::on_ready(int, uint32_t) {
  switch (step_) {
  case step::connect:
    connected();
    break;
  case step::greeting:
    greeted();
    break;
  case step::local_answer:
    local_answer();
    break;
  case step::tcp_answer:
    tcp_answer();
    break;
  }
}

void connecting::connected() {
  int problem = 0;
  socklen_t size = sizeof problem;
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &problem, &size) != 0)
    problem = errno;
  if (problem != 0) {
    failed(system_error(what(), problem));
    return;
  }
  tune(socket_.get());
  step_ = step::greeting;
  device_->change(socket_.get(), EPOLLIN, *this);
}

bool connecting::gather(byte_span message) {
  auto got = recv(socket_.get(), message.data() + have_, message.size() - have_, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR))
    return false;
  if (got <= 0) {
    failed({errc::disconnected, what() + ": it closed the connection before answering"});
    return false;
  }
  have_ += static_cast<size_t>(got);
  if (have_ < message.size())
    return false;
  have_ = 0;
  return true;
}

void connecting::greeted() {
  if (!gather(std::as_writable_bytes(std::span{&greeting_, 1})))
    return;
  if (greeting_.start.magic != handshake_magic) {
    failed(
        {errc::protocol_violation, what() + ": what listens there does not speak this protocol"});
    return;
  }
  if (greeting_.start.version != handshake_version) {
    failed({errc::version_mismatch,
            what() + ": it speaks version " + std::to_string(greeting_.start.version) +
                " of the protocol, this is version " + std::to_string(handshake_version)});
    return;
  }
  bool same_host = greeting_.place == here() && here().network != 0 && here().boot_id[0] != '\0';
  if (!may_share_ || !same_host || greeting_.socket[0] == '\0' || !claim_memory())
    request_tcp();
}

// Asks for shared memory.
// @returns whether there is an answer to wait for.
bool connecting::claim_memory() {
  auto bit = pair_.shared_bit();
  if (!bit)
    return false;
  auto file = make_shared_file("troupe-link", link_memory_size);
  if (!file)
    return false;
  auto memory = map_shared_file(file->get(), link_memory_size, true);
  if (!memory)
    return false;
  local_ = descriptor{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, greeting_.socket.data(), greeting_.socket.size());
  if (!local_ ||
      ::connect(local_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return false;
  auto peer = identity_of_peer(local_.get());
  if (!peer || peer->user != here().user)
    return false;
  claim question;
  question.start = start_;
  question.ticket = greeting_.ticket;
  question.doorbell_bit = *bit;
  auto& bell = pair_.queue().bell();
  int files[] = {file->get(), bell.file(), bell.event(), device_->regions().keys_file()};
  if (!send_message(local_.get(), message_bytes(question), files))
    return false;
  if (!device_->watch(local_.get(), EPOLLIN, *this))
    return false;
  memory_ = std::make_shared<link_memory>(std::move(*memory), 0);
  // Kept for the case that the answer is to use it.
  device_->forget(socket_.get());
  step_ = step::local_answer;
  return true;
}

void connecting::local_answer() {
  local_message message;
  auto outcome =
      receive_message(local_.get(), std::as_writable_bytes(std::span{&answer_, 1}), message);
  if (outcome == local_outcome::nothing)
    return;
  if (outcome == local_outcome::ended) {
    failed({errc::disconnected, what() + ": it closed the connection before answering"});
    return;
  }
  if (message.length != sizeof answer_ || !answer_.start.valid()) {
    failed({errc::protocol_violation, what() + ": its answer is malformed"});
    return;
  }
  if (answer_.outcome == verdict::use_tcp) {
    device_->forget(local_.get());
    local_ = descriptor{};
    if (auto watched = device_->watch(socket_.get(), EPOLLIN, *this); !watched)
      failed(watched.error());
    else
      request_tcp();
    return;
  }
  if (answer_.outcome != verdict::accepted) {
    rejected(answer_);
    return;
  }
  auto& [bell_file, bell_event, keys_file, unused] = message.descriptors;
  auto bell = remote_doorbell::open(bell_file, std::move(bell_event), answer_.doorbell_bit);
  if (!bell) {
    failed(bell.error());
    return;
  }
  auto keys = open_key_table(keys_file);
  if (!keys) {
    failed(keys.error());
    return;
  }
  auto peer = identity_of_peer(local_.get());
  device_->forget(local_.get());
  shared_link::parts parts{memory_, std::move(*keys), std::move(local_), peer ? peer->process : 0};
  pair_.establish(remote_, std::move(parts), std::move(*bell), answer_.start.data());
  finished();
}

void connecting::request_tcp() {
  request_message question{start_};
  if (send(socket_.get(), &question, sizeof question, MSG_NOSIGNAL | MSG_DONTWAIT) !=
      sizeof question) {
    failed({errc::disconnected, what() + ": it closed the connection before answering"});
    return;
  }
  have_ = 0;
  step_ = step::tcp_answer;
}

void connecting::tcp_answer() {
  if (!gather(std::as_writable_bytes(std::span{&answer_, 1})))
    return;
  if (!answer_.start.valid()) {
    failed({errc::protocol_violation, what() + ": its answer is malformed"});
    return;
  }
  if (answer_.outcome != verdict::accepted) {
    rejected(answer_);
    return;
  }
  device_->forget(socket_.get());
  pair_.establish(remote_, std::move(socket_), answer_.start.data());
  finished();
}

void connecting::rejected(const answer_message& no) {
  failed({errc::refused, what() + ": the listener refused the connection"}, no.start.data());
}

void connecting::on_deadline() {
  failed({errc::timeout, what() + ": no answer in time"});
}

void connecting::failed(error reason, byte_view private_data) {
  pair_.fail_connect(std::move(reason), private_data);
  finished();
}

void connecting::finished() {
  auto device = device_;
  device->release(*this);
}

} // namespace troupe::transport::soft
