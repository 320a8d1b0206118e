#include "caf/direct_proxy.hpp"

#include "caf/basp_header.hpp"
#include "troupe/transport/log.hpp"

#include <caf/actor_registry.hpp>
#include <caf/actor_system.hpp>
#include <caf/binary_serializer.hpp>
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

direct_proxy::direct_proxy(caf::actor_config& config, caf::actor broker,
                           std::shared_ptr<outbox> box)
    : forwarding_actor_proxy(config, std::move(broker)), box_(std::move(box)) {}

void direct_proxy::enqueue(caf::mailbox_element_ptr what, caf::execution_unit* context) {
  auto& content = what->content();
  if (sendable(what->sender)) {
    if (content.match_elements<caf::exit_msg>())
      unlink_from(content.get_as<caf::exit_msg>(0).source);
    if (send(what->sender, what->mid, what->stages, content))
      return;
  }
  forwarding_actor_proxy::enqueue(std::move(what), context);
}

/// Messages on behalf of a third node's actor must be routed, which the broker knows how to do.
bool direct_proxy::sendable(const caf::strong_actor_ptr& sender) const {
  return !sender || sender->node() == home_system().node();
}

/// @returns false when the connection is gone.
bool direct_proxy::send(const caf::strong_actor_ptr& sender, caf::message_id id,
                        const std::vector<caf::strong_actor_ptr>& stages,
                        const caf::type_erased_tuple& content) {
  auto source = sender ? sender->id() : caf::invalid_actor_id;
  if (sender && last_sender_.load(std::memory_order_relaxed) != source) {
    home_system().registry().put(source, sender); // so that the answer finds it
    last_sender_.store(source, std::memory_order_relaxed);
  }
  scratch buffer;
  auto& message = buffer.bytes();
  message.resize(basp::header_size);
  caf::binary_serializer sink{home_system(), message};
  // CAF serializes through references that are not const, and changes nothing.
  auto error = sink(const_cast<std::vector<caf::strong_actor_ptr>&>(stages));
  if (!error)
    error = caf::message::save(sink, content);
  auto length = message.size() - basp::header_size;
  if (!error && length > basp::longest_payload)
    error =
        caf::make_error(caf::sec::invalid_argument,
                        "a message of " + std::to_string(length) + " bytes is longer than the " +
                            std::to_string(basp::longest_payload) + " that one message may have");
  if (error) {
    refuse(sender, id, error);
    return true;
  }
  basp::encode(std::as_writable_bytes(std::span{message}),
               {basp::message_type::direct_message, 0, static_cast<uint32_t>(length),
                id.integer_value(), source, this->id()});
  return box_->put(message);
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
