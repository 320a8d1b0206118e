#include "troupe/transport/hello.hpp"

#include "wire.hpp"

#include <string>

namespace troupe::transport {

namespace {

constexpr uint32_t magic = 0x50525254; // "TRRP"
constexpr uint16_t protocol_version = 1;

} // namespace

std::array<std::byte, hello_bytes> encode(const hello& h) {
  std::array<std::byte, hello_bytes> out{};
  store(out, 0, magic);
  store(out, 4, protocol_version);
  store(out, 6, h.kind);
  store(out, 8, h.receive_slabs);
  store(out, 12, h.slab_bytes);
  store(out, 16, h.token);
  return out;
}

result<hello> decode_hello(byte_view bytes) {
  if (bytes.size() < hello_bytes || load<uint32_t>(bytes, 0) != magic)
    return fail(errc::protocol_violation, "the peer does not speak Troupe's protocol");
  if (auto version = load<uint16_t>(bytes, 4); version != protocol_version)
    return fail(errc::version_mismatch, "the peer speaks version " + std::to_string(version) +
                                            " of the protocol, this node " +
                                            std::to_string(protocol_version) +
                                            "; run the same release on both");
  auto kind = load<uint8_t>(bytes, 6);
  if (kind != static_cast<uint8_t>(connection_kind::stream) &&
      kind != static_cast<uint8_t>(connection_kind::memory))
    return fail(errc::protocol_violation,
                "the peer asks for an unknown kind of connection (" + std::to_string(kind) + ")");
  return hello{static_cast<connection_kind>(kind), load<uint16_t>(bytes, 8),
               load<uint32_t>(bytes, 12), load<uint64_t>(bytes, 16)};
}

} // namespace troupe::transport
