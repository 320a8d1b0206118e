#include "troupe/transport/hello.hpp"

#include "wire.hpp"

#include <string>

namespace troupe::transport {

namespace {

constexpr uint32_t magic = 0x50525254; // "TRRP"
constexpr uint16_t protocol_version = 2;
constexpr size_t version_end = 6;

constexpr size_t details = 16; // what depends on the step
constexpr size_t tag_at = 32;

bool known(connection_kind kind) {
  return kind == connection_kind::stream || kind == connection_kind::memory;
}

bool known(hello_step step) {
  return step >= hello_step::open && step <= hello_step::refusal;
}

} // namespace

packed_hello encode(const hello& h) {
  packed_hello out{};
  store(out, 0, magic);
  store(out, 4, protocol_version);
  store(out, 6, h.kind);
  store(out, 7, h.step);
  store(out, 8, h.receive_slabs);
  store(out, 10, h.capabilities);
  store(out, 12, h.slab_bytes);
  switch (h.step) {
  case hello_step::ask:
  case hello_step::challenge:
    store(out, details, h.nonce);
    break;
  case hello_step::proof:
  case hello_step::open:
    store(out, details, h.challenge);
    store(out, details + 8, h.token);
    break;
  case hello_step::refusal:
    store(out, details, h.reason);
    break;
  case hello_step::welcome:
    break;
  }
  store(out, tag_at, h.tag);
  return out;
}

result<hello> decode_hello(byte_view bytes) {
  if (bytes.size() < version_end || load<uint32_t>(bytes, 0) != magic)
    return fail(errc::protocol_violation, "the peer does not speak Troupe's protocol");
  if (auto version = load<uint16_t>(bytes, 4); version != protocol_version)
    return fail(errc::version_mismatch, "the peer speaks version " + std::to_string(version) +
                                            " of the protocol, this node " +
                                            std::to_string(protocol_version) +
                                            "; run the same release on both");
  if (bytes.size() < hello_bytes)
    return fail(errc::protocol_violation, "the peer's hello is cut short");
  hello h;
  h.kind = load<connection_kind>(bytes, 6);
  h.step = load<hello_step>(bytes, 7);
  if (!known(h.kind))
    return fail(errc::protocol_violation, "the peer asks for an unknown kind of connection (" +
                                              std::to_string(static_cast<int>(h.kind)) + ")");
  if (!known(h.step))
    return fail(errc::protocol_violation, "the peer's hello is of an unknown step (" +
                                              std::to_string(static_cast<int>(h.step)) + ")");
  h.receive_slabs = load<uint16_t>(bytes, 8);
  h.capabilities = load<uint16_t>(bytes, 10);
  h.slab_bytes = load<uint32_t>(bytes, 12);
  switch (h.step) {
  case hello_step::ask:
  case hello_step::challenge:
    h.nonce = load<hello::nonce_bytes>(bytes, details);
    break;
  case hello_step::proof:
  case hello_step::open:
    h.challenge = load<uint64_t>(bytes, details);
    h.token = load<uint64_t>(bytes, details + 8);
    break;
  case hello_step::refusal:
    h.reason = load<refusal>(bytes, details);
    break;
  case hello_step::welcome:
    break;
  }
  h.tag = load<shared_key::tag>(bytes, tag_at);
  return h;
}

} // namespace troupe::transport
