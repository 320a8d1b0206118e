// The secret that all nodes which may connect to each other have.
#pragma once

#include "troupe/transport/bytes.hpp"
#include "troupe/transport/error.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

namespace troupe::transport {

/// Where a key comes from and where it is named: for errors that ask for one.
inline constexpr std::string_view key_remedy =
    "make a key with `trouped --new-key FILE`, copy that file to every node, and name it with "
    "[cluster] key_file in the configuration or TROUPE_KEY_FILE";

/// 256 random bits. Authenticates messages with keyed BLAKE2b (libsodium's `crypto_generichash`).
/// The bits are wiped from memory when it goes. Any thread.
class shared_key {
public:
  static constexpr size_t bytes = 32;
  using tag = std::array<std::byte, 16>;

  /// A new key.
  static std::shared_ptr<const shared_key> random();

  /// Reads what `text()` wrote: 64 hexadecimal digits, and white space after them at most.
  /// @returns `errc::invalid_argument`; the error does not quote the text.
  static result<std::shared_ptr<const shared_key>> parse(std::string_view text);

  ~shared_key();
  shared_key(const shared_key&) = delete;
  shared_key& operator=(const shared_key&) = delete;

  /// 64 hexadecimal digits and a line's end.
  std::string text() const;

  /// Authenticates `parts` in this order, as if they were one piece.
  tag sign(std::initializer_list<byte_view> parts) const;

  /// Whether `claimed` is what `sign` gives for `parts`; takes the same time whatever differs.
  bool matches(const tag& claimed, std::initializer_list<byte_view> parts) const;

private:
  shared_key() = default;

  std::array<unsigned char, bytes> bytes_{};
};

/// Null when there is no key.
using shared_key_ptr = std::shared_ptr<const shared_key>;

/// Makes a new key and writes it to `file`, which only its owner may read. Never overwrites.
/// @returns `errc::already_exists`, or why it could not be written.
status create_key_file(const std::filesystem::path& file);

/// Reads the key in `file`.
/// @returns `errc::permission_denied`, with the remedy, when anybody but its owner may read or
/// write it, or when it belongs neither to this user nor to root; `errc::not_found`,
/// `errc::invalid_argument` when it holds no key.
result<shared_key_ptr> load_key_file(const std::filesystem::path& file);

/// Fills `out` with bytes that nobody can guess. Any thread.
void fill_random(byte_span out);

} // namespace troupe::transport
