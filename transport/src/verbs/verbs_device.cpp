#include "verbs_device.hpp"

#include "connection.hpp"
#include "troupe/transport/log.hpp"

namespace troupe::transport::verbs {

namespace {

constexpr int listen_backlog = 128;

status check_private_data(byte_view data) {
  if (data.size() > max_private_data)
    return fail(errc::invalid_argument, std::to_string(data.size()) +
                                            " bytes of private data; a connection carries " +
                                            std::to_string(max_private_data));
  return {};
}

class request final : public connection_request, public event_target {
public:
  request(std::shared_ptr<connector> events, id_handle id, cm_event event)
      : events_(std::move(events)), id_(std::move(id)), event_(std::move(event)) {
    id_->context = static_cast<event_target*>(this);
  }

  ~request() override { reject({}); }

  byte_view private_data() const override { return event_.private_data; }

  endpoint peer() const override {
    return id_ ? socket_address{rdma_get_peer_addr(id_.get())}.to_endpoint() : endpoint{};
  }

  bool same_user() const override { return false; }

  result<std::unique_ptr<queue_pair>> accept(const queue_pair_config& config,
                                             byte_view private_data) override {
    if (auto fits = check_private_data(private_data); !fits)
      return fail(fits.error());
    if (!id_ || gone_)
      return fail(errc::disconnected, "the peer has given up, or the request is used up");
    auto made = connection::create(events_, std::move(id_), config);
    if (!made)
      return fail(made.error());
    (*made)->start_accept(private_data, event_);
    return std::move(*made);
  }

  void reject(byte_view private_data) override {
    if (!id_)
      return;
    auto size = static_cast<uint8_t>(std::min(private_data.size(), max_private_data));
    if (!gone_ && rdma_reject(id_.get(), private_data.data(), size) != 0)
      log_for("verbs")->debug("rdma_reject failed: {}", errno);
    id_.reset();
  }

  std::optional<connection_event> on_event(cm_event&) override {
    gone_ = true; // before an accept there is no other news than bad news
    return std::nullopt;
  }

private:
  std::shared_ptr<connector> events_;
  id_handle id_;
  cm_event event_;
  bool gone_ = false;
};

class acceptor final : public listener, public event_target {
public:
  explicit acceptor(std::shared_ptr<connector> events) : events_(std::move(events)) {}

  ~acceptor() override { events_->forget(*this); }

  status start(const endpoint& where) {
    const auto& on = *events_->shared_adapter();
    auto resolved = resolve(where, name_lookup::allowed);
    if (!resolved)
      return fail(resolved.error());
    auto address = on.without_loopback(*resolved);
    if (!address.is_any())
      return listen_at(address);
    // A port that is free at one address may be taken at the next: then another is chosen.
    for (int attempt = 1;; ++attempt) {
      auto done = listen_everywhere(where.port);
      if (done || done.error().code() != errc::address_in_use || where.port != 0 ||
          attempt == most_attempts)
        return done;
      ids_.clear();
    }
  }

  endpoint local() const override { return local_; }

  std::optional<connection_event> on_event(cm_event& event) override {
    const auto& on = *events_->shared_adapter();
    if (event.type != RDMA_CM_EVENT_CONNECT_REQUEST) {
      log_for("verbs")->warn("listener at {}: {}", to_string(local_), rdma_event_str(event.type));
      return std::nullopt;
    }
    id_handle id{event.id};
    if (id->verbs != on.context()) {
      log_for("verbs")->warn("{} asked to connect at {} through another device than {}: refused",
                             socket_address{rdma_get_peer_addr(id.get())}.host(), to_string(local_),
                             on.name());
      rdma_reject(id.get(), nullptr, 0);
      return std::nullopt;
    }
    connection_event told;
    told.what = connection_event::kind::requested;
    told.source = this;
    told.request = std::make_unique<request>(events_, std::move(id), std::move(event));
    return told;
  }

private:
  static constexpr int most_attempts = 16;

  /// At each address by name: a wildcard would take the port on other adapters too, and one of IPv6
  /// does not serve IPv4 on every adapter.
  status listen_everywhere(uint16_t port) {
    for (auto address : events_->shared_adapter()->addresses()) {
      address.set_port(ids_.empty() ? port : local_.port);
      if (auto done = listen_at(address); !done)
        return done;
    }
    return {};
  }

  /// Listens there too; the first such address is what `local` tells.
  status listen_at(socket_address address) {
    const auto& on = *events_->shared_adapter();
    auto what = "listen on " + to_string(address.to_endpoint()) + " with " + on.name();
    auto made = events_->make_id(this);
    if (!made)
      return fail(made.error());
    auto id = std::move(*made);
    if (rdma_bind_addr(id.get(), address.raw()) != 0) {
      auto cause = errno;
      if (cause == ENODEV || cause == EADDRNOTAVAIL)
        return fail(errc::invalid_argument, what + ": the address belongs to no RDMA device; " +
                                                on.name() + " has " +
                                                on.addresses().front().host());
      return fail(system_error(what, cause));
    }
    if (id->verbs != on.context())
      return fail(errc::invalid_argument, what + ": the address belongs to another device; " +
                                              on.name() + " has " + on.addresses().front().host());
    if (rdma_listen(id.get(), listen_backlog) != 0)
      return fail(system_error(what, errno));
    if (ids_.empty())
      local_ = {address.host(), ntohs(rdma_get_src_port(id.get()))};
    ids_.push_back(std::move(id));
    return {};
  }

  std::shared_ptr<connector> events_;
  std::vector<id_handle> ids_;
  endpoint local_;
};

class verbs_device final : public device {
public:
  explicit verbs_device(std::shared_ptr<connector> events)
      : adapter_(events->shared_adapter()), events_(std::move(events)) {}

  const std::string& name() const noexcept override { return adapter_->name(); }
  const device_limits& limits() const noexcept override { return adapter_->limits(); }

  result<std::unique_ptr<memory_region>> allocate(size_t size, access rights) override {
    return region::allocate(adapter_, size, rights);
  }

  result<std::unique_ptr<memory_region>> register_memory(byte_span memory, access rights) override {
    return region::adopt(adapter_, memory, rights);
  }

  result<std::unique_ptr<completion_queue>> create_completion_queue(uint32_t depth) override {
    return completions::create(adapter_, depth);
  }

  result<std::unique_ptr<listener>> listen(const endpoint& local) override {
    auto made = std::make_unique<acceptor>(events_);
    if (auto started = made->start(local); !started)
      return fail(started.error());
    return made;
  }

  result<std::unique_ptr<queue_pair>> connect(const endpoint& remote,
                                              const queue_pair_config& config,
                                              byte_view private_data,
                                              std::chrono::milliseconds timeout) override {
    if (auto fits = check_private_data(private_data); !fits)
      return fail(fits.error());
    auto resolved = resolve(remote, name_lookup::numeric_only);
    if (!resolved)
      return fail(resolved.error());
    auto target = adapter_->without_loopback(*resolved);
    auto what = "connect to " + to_string(target.to_endpoint()) + " through " + name();
    if (target.is_any() || target.port() == 0)
      return fail(errc::invalid_argument, what + ": an address and a port are needed");
    auto own = adapter_->address_for(target.family());
    if (own.family() != target.family())
      return fail(errc::unreachable,
                  what + ": the adapter has no address of that family, only " + own.host());
    own.set_port(0);
    auto id = events_->make_id(nullptr);
    if (!id)
      return fail(id.error());
    // Binding first makes the adapter known, so that the queue pair can be made at once.
    if (rdma_bind_addr(id->get(), own.raw()) != 0)
      return fail(system_error(what + ": rdma_bind_addr to " + own.host(), errno));
    auto made = connection::create(events_, std::move(*id), config);
    if (!made)
      return fail(made.error());
    if (auto started = (*made)->start_connect(target, private_data, timeout); !started)
      return fail(started.error());
    return std::move(*made);
  }

  int event_fd() const noexcept override { return events_->fd(); }
  std::optional<connection_event> next_event() override { return events_->next(); }

private:
  std::shared_ptr<adapter> adapter_;
  std::shared_ptr<connector> events_;
};

} // namespace

} // namespace troupe::transport::verbs

namespace troupe::transport {

result<std::unique_ptr<device>> open_verbs_device(const std::string& name) {
  auto opened = verbs::adapter::open(name);
  if (!opened)
    return fail(opened.error());
  auto events = verbs::connector::create(std::move(*opened));
  if (!events)
    return fail(events.error());
  return std::make_unique<verbs::verbs_device>(std::move(*events));
}

} // namespace troupe::transport
