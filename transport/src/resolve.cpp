#include "troupe/transport/resolve.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <netdb.h>
#include <sys/socket.h>

namespace troupe::transport {

result<std::vector<endpoint>> resolve(const endpoint& where) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  if (auto rc = ::getaddrinfo(where.host.c_str(), nullptr, &hints, &raw); rc != 0)
    return fail(errc::cannot_resolve, "cannot resolve '" + where.host + "': " + ::gai_strerror(rc));
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list{raw, &::freeaddrinfo};
  std::vector<endpoint> found;
  for (auto entry = list.get(); entry; entry = entry->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (::getnameinfo(entry->ai_addr, entry->ai_addrlen, text.data(), text.size(), nullptr, 0,
                      NI_NUMERICHOST) != 0)
      continue;
    endpoint numeric{text.data(), where.port};
    if (std::find(found.begin(), found.end(), numeric) == found.end())
      found.push_back(std::move(numeric));
  }
  if (found.empty())
    return fail(errc::cannot_resolve, "'" + where.host + "' has no usable address");
  return found;
}

} // namespace troupe::transport
