// What two devices say to each other before a connection exists.
//
//   client                               listener
//     | ---- TCP connect ------------------> |
//     | <--- greeting ---------------------- |   who it is, and a token for this connection
//   On one host:
//     | ---- Unix connect, claim ----------> |   the token, memory, a doorbell, a key table
//     | <--- answer ------------------------ |   accepted (with doorbell and key table), rejected,
//     |                                      |   or: not this way, go on over TCP
//   Otherwise:
//     | ---- request ----------------------> |
//     | <--- answer ------------------------ |
#pragma once

#include "soft/doorbell.hpp"
#include "soft/link_memory.hpp"
#include "soft/shared_link.hpp"
#include "troupe/transport/device.hpp"

#include <array>
#include <cstring>

namespace troupe::transport::soft {

constexpr uint64_t handshake_magic = 0x00'31'45'50'55'4f'52'54U; // "TROUPE1"
constexpr uint32_t handshake_version = 1;

/// How long a peer may take for each step of a handshake.
constexpr std::chrono::seconds handshake_patience{10};

using token = std::array<std::byte, 16>;

/// Where a process runs, for two to find out whether they can share memory.
struct whereabouts {
  std::array<char, 40> boot_id{}; ///< of the running kernel
  uint64_t network = 0;           ///< inode of the network namespace: abstract sockets live in it
  uint32_t user = 0;
  uint32_t unused = 0;

  bool operator==(const whereabouts&) const = default;
};

struct opening {
  uint64_t magic = handshake_magic;
  uint32_t version = handshake_version;
  uint32_t size = 0; ///< of the private data
  std::array<std::byte, max_private_data> private_data{};

  bool valid() const noexcept {
    return magic == handshake_magic && version == handshake_version && size <= max_private_data;
  }
  void set(byte_view data) noexcept {
    size = static_cast<uint32_t>(data.size());
    if (!data.empty())
      std::memcpy(private_data.data(), data.data(), data.size());
  }
  byte_view data() const noexcept { return {private_data.data(), size}; }
};

struct greeting {
  opening start;
  whereabouts place;
  std::array<char, 32> socket{}; ///< abstract name, empty: only TCP here
  token ticket{};
};

struct request_message {
  opening start;
};

/// With the descriptors of: link memory, doorbell page, doorbell event, key table.
struct claim {
  opening start;
  token ticket{};
  uint32_t doorbell_bit = 0;
  uint32_t unused = 0;
};

enum class verdict : uint32_t { accepted = 1, rejected = 2, use_tcp = 3 };

/// On the Unix socket, when accepted, with: doorbell page, doorbell event, key table.
struct answer_message {
  opening start;
  verdict outcome = verdict::rejected;
  uint32_t doorbell_bit = 0;
};

template <class T>
byte_view message_bytes(const T& message) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::as_bytes(std::span{&message, 1});
}

/// Where this process runs, and as whom now: it may have changed its user, say after a fork.
whereabouts here();

/// Bytes that nobody can guess.
token make_token();

} // namespace troupe::transport::soft
