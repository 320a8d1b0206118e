#include "soft/request.hpp"

#include "soft/pair.hpp"
#include "soft/socket_owner.hpp"
#include "troupe/transport/log.hpp"

#include <cerrno>
#include <sys/socket.h>

namespace troupe::transport::soft {

status check_config(const queue_pair_config& config, byte_view private_data) {
  if (!config.completions || !dynamic_cast<completions*>(config.completions))
    return fail(errc::invalid_argument, "a queue pair needs a completion queue of its own device");
  for (auto depth : {config.send_depth, config.receive_depth})
    if (depth == 0 || depth > limits_of_soft.max_depth)
      return fail(errc::invalid_argument,
                  "a queue of " + std::to_string(depth) + " work requests: 1 to " +
                      std::to_string(limits_of_soft.max_depth) + " are possible");
  if (private_data.size() > max_private_data)
    return fail(errc::invalid_argument, std::to_string(private_data.size()) +
                                            " bytes of private data: at most " +
                                            std::to_string(max_private_data) + " are possible");
  return {};
}

result<mapping> open_key_table(const descriptor& file) {
  auto size = whole_pages(sizeof(key_page));
  if (auto checked = check_shared_file(file.get(), size); !checked)
    return fail(checked.error());
  return map_shared_file(file.get(), size, false);
}

namespace {

// What both ways have in common.
class soft_request : public connection_request {
public:
  soft_request(std::shared_ptr<context> device, const endpoint& peer, const opening& start)
      : device_(std::move(device)), peer_(peer), start_(start) {}

  byte_view private_data() const override { return start_.data(); }
  endpoint peer() const override { return peer_; }

  result<std::unique_ptr<queue_pair>> accept(const queue_pair_config& config,
                                             byte_view private_data) final {
    if (answered_)
      return fail(errc::invalid_argument, "this connection request was answered before");
    if (auto checked = check_config(config, private_data); !checked)
      return fail(checked.error());
    auto made = std::make_unique<pair>(device_, config);
    if (auto done = complete(*made, private_data); !done) {
      answered_ = true;
      return fail(done.error());
    }
    answered_ = true;
    return made;
  }

  void reject(byte_view private_data) final {
    if (std::exchange(answered_, true))
      return;
    answer_message no;
    no.start.set(private_data.first(std::min(private_data.size(), max_private_data)));
    send_rejection(no);
  }

protected:
  virtual status complete(pair& made, byte_view private_data) = 0;
  virtual void send_rejection(const answer_message& no) = 0;

  error gone() const {
    return {errc::disconnected, to_string(peer_) + " gave up before its connection was accepted"};
  }

  std::shared_ptr<context> device_;
  endpoint peer_;

private:
  opening start_;
  bool answered_ = false;
};

class tcp_request final : public soft_request {
public:
  tcp_request(std::shared_ptr<context> device, const endpoint& peer, const opening& start,
              descriptor socket)
      : soft_request(std::move(device), peer, start), socket_(std::move(socket)) {}

  ~tcp_request() override { reject({}); }

  bool same_user() const override { return socket_ && peer_is_same_user(socket_.get()); }

private:
  status complete(pair& made, byte_view private_data) override {
    answer_message yes;
    yes.outcome = verdict::accepted;
    yes.start.set(private_data);
    if (!say(yes))
      return fail(gone());
    made.establish(peer_, std::move(socket_), {});
    return {};
  }

  void send_rejection(const answer_message& no) override {
    if (socket_)
      say(no);
    socket_ = descriptor{};
  }

  // The first thing after the greeting: there is room for it.
  bool say(const answer_message& answer) {
    return send(socket_.get(), &answer, sizeof answer, MSG_NOSIGNAL | MSG_DONTWAIT) ==
           sizeof answer;
  }

  descriptor socket_;
};

class shared_request final : public soft_request {
public:
  shared_request(std::shared_ptr<context> device, const endpoint& peer, const opening& start,
                 shared_link::parts parts, remote_doorbell bell)
      : soft_request(std::move(device), peer, start), parts_(std::move(parts)),
        bell_(std::move(bell)) {}

  ~shared_request() override { reject({}); }

  bool same_user() const override { return true; } // the door lets nobody else in

private:
  status complete(pair& made, byte_view private_data) override {
    auto bit = made.shared_bit();
    if (!bit) {
      reject({});
      return fail(errc::limit_too_low, "a completion queue serves " +
                                           std::to_string(doorbell_bits) +
                                           " pairs in shared memory; make another one");
    }
    answer_message yes;
    yes.outcome = verdict::accepted;
    yes.start.set(private_data);
    yes.doorbell_bit = *bit;
    auto& bell = made.queue().bell();
    int files[] = {bell.file(), bell.event(), device_->regions().keys_file()};
    if (!send_message(parts_.life_line.get(), message_bytes(yes), files))
      return fail(gone());
    made.establish(peer_, std::move(parts_), std::move(bell_), {});
    return {};
  }

  void send_rejection(const answer_message& no) override {
    if (parts_.life_line)
      send_message(parts_.life_line.get(), message_bytes(no), {});
    parts_.life_line = descriptor{};
  }

  shared_link::parts parts_;
  remote_doorbell bell_;
};

// Everything but the life line, over which the peer must hear how this ended.
result<std::pair<shared_link::parts, remote_doorbell>>
open_parts(const claim& question, pid_t process, local_message message) {
  auto& [memory_file, bell_file, bell_event, keys_file] = message.descriptors;
  if (auto checked = check_shared_file(memory_file.get(), link_memory_size); !checked)
    return fail(checked.error());
  auto memory = map_shared_file(memory_file.get(), link_memory_size, true);
  if (!memory)
    return fail(memory.error());
  auto bell = remote_doorbell::open(bell_file, std::move(bell_event), question.doorbell_bit);
  if (!bell)
    return fail(bell.error());
  auto keys = open_key_table(keys_file);
  if (!keys)
    return fail(keys.error());
  shared_link::parts parts{std::make_shared<link_memory>(std::move(*memory), 1), std::move(*keys),
                           descriptor{}, process};
  return std::pair{std::move(parts), std::move(*bell)};
}

} // namespace

std::unique_ptr<connection_request> make_tcp_request(std::shared_ptr<context> device,
                                                     const endpoint& peer, const opening& start,
                                                     descriptor socket) {
  return std::make_unique<tcp_request>(std::move(device), peer, start, std::move(socket));
}

std::unique_ptr<connection_request> make_shared_request(std::shared_ptr<context> device,
                                                        const endpoint& peer, const claim& question,
                                                        descriptor life_line, pid_t process,
                                                        local_message message) {
  auto opened = open_parts(question, process, std::move(message));
  if (!opened) {
    log_for("soft")->warn("no shared memory with {}, which will use TCP: {}", to_string(peer),
                          opened.error().text());
    answer_message other;
    other.outcome = verdict::use_tcp;
    send_message(life_line.get(), message_bytes(other), {});
    return nullptr;
  }
  opened->first.life_line = std::move(life_line);
  return std::make_unique<shared_request>(std::move(device), peer, question.start,
                                          std::move(opened->first), std::move(opened->second));
}

} // namespace troupe::transport::soft
