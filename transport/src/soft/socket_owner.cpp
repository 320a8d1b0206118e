#include "soft/socket_owner.hpp"

#include "soft/socket_address.hpp"
#include "troupe/transport/log.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <string>
#include <vector>

namespace troupe::transport::soft {

namespace {

constexpr std::string_view established = "01";

/// An end of a connection as /proc/net/tcp and /proc/net/tcp6 write it: the address as words in the
/// machine's byte order. A connection between IPv4 addresses may stand in either table.
struct written_end {
  std::string v4; ///< empty for an IPv6 address
  std::string v6;
};

written_end write_end(const socket_address& address) {
  std::array<uint32_t, 4> words{};
  char text[64];
  written_end end;
  if (address.storage.ss_family == AF_INET6) {
    auto& v6 = reinterpret_cast<const sockaddr_in6&>(address.storage);
    std::memcpy(words.data(), &v6.sin6_addr, sizeof words);
    std::snprintf(text, sizeof text, "%08X%08X%08X%08X:%04X", words[0], words[1], words[2],
                  words[3], ntohs(v6.sin6_port));
    end.v6 = text;
    if (!IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr))
      return end;
    std::snprintf(text, sizeof text, "%08X:%04X", words[3], ntohs(v6.sin6_port));
    end.v4 = text;
    return end;
  }
  auto& v4 = reinterpret_cast<const sockaddr_in&>(address.storage);
  uint32_t word = v4.sin_addr.s_addr;
  std::snprintf(text, sizeof text, "%08X:%04X", word, ntohs(v4.sin_port));
  end.v4 = text;
  std::snprintf(text, sizeof text, "0000000000000000%08X%08X:%04X", htonl(0xffffU), word,
                ntohs(v4.sin_port));
  end.v6 = text;
  return end;
}

/// The next word of `line`, which is cut off there.
std::string_view next_word(std::string_view& line) {
  auto start = line.find_first_not_of(' ');
  if (start == std::string_view::npos)
    return line = {};
  auto end = std::min(line.find(' ', start), line.size());
  auto word = line.substr(start, end - start);
  line.remove_prefix(end);
  return word;
}

std::string read_table(const char* name) {
  std::string text;
  descriptor file{::open(name, O_RDONLY | O_CLOEXEC)};
  if (!file)
    return text; // no IPv6, or no /proc: then nobody is known
  std::array<char, 65536> part;
  for (;;) {
    auto got = ::read(file.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return text;
    text.append(part.data(), static_cast<size_t>(got));
  }
}

} // namespace

std::optional<uid_t> find_owner(std::string_view table, std::string_view local,
                                std::string_view remote) {
  while (!table.empty()) {
    auto end = std::min(table.find('\n'), table.size());
    auto line = table.substr(0, end);
    table.remove_prefix(std::min(end + 1, table.size()));
    next_word(line); // number
    if (next_word(line) != local || next_word(line) != remote || next_word(line) != established)
      continue;
    for (int skipped = 0; skipped < 3; ++skipped) // queues, timer, retransmissions
      next_word(line);
    auto user = next_word(line);
    next_word(line); // time-out
    auto inode = next_word(line);
    uid_t number = 0;
    auto [rest, problem] = std::from_chars(user.data(), user.data() + user.size(), number);
    // Without an inode nobody holds the socket any more, and the user says nothing.
    if (problem == std::errc{} && rest == user.data() + user.size() && !inode.empty() &&
        inode != "0")
      return number;
  }
  return std::nullopt;
}

std::optional<uid_t> owner_of_peer(int socket) {
  socket_address here, there;
  here.size = there.size = sizeof here.storage;
  if (getsockname(socket, here.get(), &here.size) != 0 ||
      getpeername(socket, there.get(), &there.size) != 0)
    return std::nullopt;
  auto ours = write_end(here), theirs = write_end(there);
  if (!ours.v4.empty())
    if (auto user = find_owner(read_table("/proc/self/net/tcp"), theirs.v4, ours.v4))
      return user;
  return find_owner(read_table("/proc/self/net/tcp6"), theirs.v6, ours.v6);
}

bool peer_is_same_user(int socket) {
  auto user = owner_of_peer(socket);
  return user && (*user == ::geteuid() || *user == 0);
}

} // namespace troupe::transport::soft
