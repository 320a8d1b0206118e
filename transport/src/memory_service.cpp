#include "troupe/transport/memory_service.hpp"

#include "troupe/transport/log.hpp"

#include <utility>

namespace troupe::transport {

result<std::unique_ptr<memory_region>> memory_service::allocate(size_t size, access rights) {
  return loop_.adapter().allocate(size, rights);
}

result<std::unique_ptr<memory_region>> memory_service::register_memory(byte_span memory,
                                                                       access rights) {
  return loop_.adapter().register_memory(memory, rights);
}

uint64_t memory_service::expect(memory_link::events handlers,
                                std::function<void(link_ptr)> on_link) {
  std::lock_guard lock{guard_};
  uint64_t token = 0;
  while (token == 0 || expected_.contains(token))
    fill_random(std::as_writable_bytes(std::span{&token, 1}));
  expected_.emplace(token, expected_link{std::move(handlers), std::move(on_link)});
  return token;
}

void memory_service::forget(uint64_t token) {
  std::lock_guard lock{guard_};
  expected_.erase(token);
}

result<link_ptr> memory_service::connect(const endpoint& remote, uint64_t token,
                                         std::chrono::milliseconds timeout,
                                         memory_link::events handlers) {
  auto link = memory_link::connect(loop_, remote, token, {}, timeout, std::move(handlers));
  if (!link)
    return fail(link.error());
  return link_ptr{std::move(*link)};
}

void memory_service::on_request(connection_request& request, const gate::admission& whom) {
  expected_link expected;
  {
    std::lock_guard lock{guard_};
    auto found = expected_.find(whom.theirs.token);
    if (found == expected_.end()) {
      log_for("transport")
          ->warn("{} asks for a memory link that nobody expects: refused",
                 to_string(request.peer()));
      request.reject(gate::refuse(refusal::not_expected));
      return;
    }
    expected = std::move(found->second);
    expected_.erase(found);
  }
  auto closed = expected.handlers.closed;
  auto link = memory_link::accept(loop_, request, whom, {}, std::move(expected.handlers));
  if (!link) {
    log_for("transport")
        ->warn("memory link from {}: {}", to_string(request.peer()), link.error().text());
    if (closed)
      closed(link.error());
    return;
  }
  expected.on_link(link_ptr{std::move(*link)});
}

} // namespace troupe::transport
