#include "caf/direct_proxy.hpp"

#include "caf/basp_header.hpp"
#include "caf/node_broker.hpp"
#include "troupe/transport/log.hpp"

#include <caf/actor_registry.hpp>
#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>
#include <caf/make_message.hpp>
#include <caf/system_messages.hpp>
#include <string>
#include <utility>

namespace troupe::transport {

namespace {

// A buffer of more than this is given back when its message did not take it along.
constexpr size_t most_kept = 1024 * 1024;

/// The buffer that this thread serializes into: warm after the first message. A type whose
/// `inspect` sends messages itself gets one of its own for those.
class scratch {
public:
  scratch() : owner_(!std::exchange(busy, true)) { bytes().clear(); }
  ~scratch() {
    if (!owner_)
      return;
    busy = false;
    if (shared.capacity() > most_kept)
      shared = {};
  }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;

  outbox::bytes& bytes() { return owner_ ? shared : own_; }

private:
  static thread_local bool busy;
  static thread_local outbox::bytes shared;
  bool owner_;
  outbox::bytes own_;
};

thread_local bool scratch::busy = false;
thread_local outbox::bytes scratch::shared;

} // namespace

direct_proxy::direct_proxy(caf::actor_config& config, node_broker& broker)
    : forwarding_actor_proxy(config, caf::actor_cast<caf::actor>(&broker)), broker_(broker),
      keeper_(broker.ctrl()) {}

void direct_proxy::enqueue(caf::mailbox_element_ptr what, caf::execution_unit* context) {
  // Messages on behalf of a third node's actor must be routed, which the broker knows how to do.
  if (!what->sender || what->sender->node() == home_system().node()) {
    auto& content = what->content();
    if (content.match_elements<caf::exit_msg>())
      unlink_from(content.get_as<caf::exit_msg>(0).source);
    if (send(what))
      return;
  }
  forwarding_actor_proxy::enqueue(std::move(what), context);
}

/// @returns false when the connection is gone; `what` is still there then.
bool direct_proxy::send(caf::mailbox_element_ptr& what) {
  // Asked for each time: of two connections that were made at once, one is given up.
  auto box = broker_.box_to(node());
  if (!box)
    return false;
  auto sender = what->sender;
  auto id = what->mid;
  auto source = sender ? sender->id() : caf::invalid_actor_id;
  if (sender && last_sender_.load(std::memory_order_relaxed) != source) {
    home_system().registry().put(source, sender); // so that the answer finds it
    last_sender_.store(source, std::memory_order_relaxed);
  }
  scratch buffer;
  auto& message = buffer.bytes();
  message.resize(basp::header_size);
  message_writer sink{home_system(), message, what->content(), broker_.long_run()};
  auto error = sink(what->stages);
  if (!error)
    error = caf::message::save(sink, what->content());
  auto flags = uint8_t{0};
  if (!sink.holes().empty()) {
    flags = basp::has_layout;
    auto layout = basp::encode_layout(sink.holes());
    message.insert(message.begin() + basp::header_size, layout.begin(), layout.end());
  }
  auto length = message.size() - basp::header_size;
  if (!error && length > basp::longest_payload)
    error = caf::make_error(
        caf::sec::invalid_argument,
        "a message of " + std::to_string(length) + " bytes is longer than the " +
            std::to_string(basp::longest_payload) +
            " that one message may have, long strings and vectors of bytes not counted");
  if (error) {
    refuse(sender, id, error);
    return true;
  }
  basp::encode(std::as_writable_bytes(std::span{message}),
               {basp::message_type::direct_message, flags, static_cast<uint32_t>(length),
                id.integer_value(), source, this->id()});
  if (sink.holes().empty())
    return box->put(message);
  std::vector<attachment> attached;
  std::shared_ptr<const void> owner{what.release(), [](caf::mailbox_element* element) {
                                      caf::mailbox_element_ptr{element}.reset();
                                    }};
  for (auto& each : sink.holes())
    attached.push_back({each.bytes, owner});
  if (!box->put(message, std::move(attached)))
    refuse(sender, id, caf::make_error(caf::exit_reason::remote_link_unreachable));
  return true;
}

/// A message that cannot be sent is an error for its sender, never silence.
void direct_proxy::refuse(const caf::strong_actor_ptr& sender, caf::message_id id,
                          const caf::error& why) {
  log_for("transport")->error("a message is not sent: {}", home_system().render(why));
  if (!sender)
    return;
  auto answer = id.is_request() ? id.response_id() : caf::make_message_id();
  sender->enqueue(nullptr, answer, caf::make_message(why), nullptr);
}

} // namespace troupe::transport
