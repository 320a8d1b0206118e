#include "caf/multiplexer.hpp"

#include "caf/stream_doorman.hpp"
#include "caf/stream_scribe.hpp"
#include "troupe/transport/log.hpp"
#include "troupe/transport/resolve.hpp"

#include <caf/actor_system_config.hpp>
#include <caf/defaults.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>
#include <future>
#include <unistd.h>
#include <utility>

namespace troupe::transport {

namespace {

namespace network = caf::io::network;

constexpr unsigned turns_between_socket_looks = 16;

/// Wakes the engine when one of its descriptors is readable. CAF closes the descriptor of a
/// handler: it gets a duplicate.
class engine_watch final : public network::event_handler {
public:
  engine_watch(multiplexer& owner, int fd)
      : event_handler(owner, ::dup(fd)), engine_(owner.loop()), watched_(fd) {
    owner.add(network::operation::read, fd_, this);
  }

  void handle_event(network::operation) override { engine_.wake_up(watched_); }
  void removed_from_loop(network::operation) override {}
  void graceful_shutdown() override {}

private:
  engine& engine_;
  int watched_;
};

caf::error to_caf(caf::sec code, const error& e, const std::string& host, uint16_t port) {
  return caf::make_error(code, e.text(), host, port);
}

} // namespace

multiplexer::multiplexer(caf::actor_system* system)
    : default_multiplexer(system),
      max_throughput_(caf::get_or(system->config(), "scheduler.max-throughput",
                                  caf::defaults::scheduler::max_throughput)) {}

multiplexer::~multiplexer() {
  posted_.take_all(local_);
  for (auto ptr : local_)
    caf::scheduler::abstract_coordinator::cleanup_and_release(ptr);
}

void multiplexer::open(settings chosen) {
  settings_ = std::move(chosen);
  auto opened = engine::open(settings_.device);
  if (!opened) {
    log_for("transport")->error("no device: {}", opened.error().text());
    ready_ = fail(opened.error());
    return;
  }
  engine_ = std::move(*opened);
  memory_ = std::make_unique<memory_service>(*engine_);
  log_for("transport")->info("device {}: {}", engine_->adapter().name(), engine_->choice());
}

// -- publish and connect
// ------------------------------------------------------------------------------

bool multiplexer::uses_rdma() const noexcept {
  return std::this_thread::get_id() == rdma_thread_.load(std::memory_order_acquire);
}

bool multiplexer::call_on_loop(std::function<void()> action) {
  auto done = std::make_shared<std::promise<void>>();
  auto finished = done->get_future();
  post([done, action = std::move(action)] {
    action();
    done->set_value();
  });
  while (finished.wait_for(std::chrono::milliseconds{100}) != std::future_status::ready)
    if (ended_.load())
      return false;
  return true;
}

caf::expected<caf::io::doorman_ptr> multiplexer::new_tcp_doorman(uint16_t port, const char* in,
                                                                 bool reuse_addr) {
  if (probing_.exchange(false)) {
    rdma_thread_.store(std::this_thread::get_id(), std::memory_order_release);
    return caf::make_error(caf::sec::cannot_open_port, "only asked to learn which thread asks");
  }
  if (!uses_rdma())
    return default_multiplexer::new_tcp_doorman(port, in, reuse_addr);
  endpoint local{in ? in : "", port};
  if (!ready_)
    return to_caf(caf::sec::cannot_open_port, ready_.error(), local.host, port);
  caf::expected<caf::io::doorman_ptr> made{caf::sec::cannot_open_port};
  auto ran = call_on_loop([&] {
    auto doorman =
        caf::make_counted<stream_doorman>(*this, caf::io::accept_handle::from_int(++last_handle_));
    auto listening = engine_->listen(
        local, [raw = doorman.get()](auto request) { raw->on_request(std::move(request)); });
    if (!listening) {
      made = to_caf(caf::sec::cannot_open_port, listening.error(), local.host, port);
      return;
    }
    doorman->attach(std::move(*listening));
    made = caf::io::doorman_ptr{std::move(doorman)};
  });
  if (!ran)
    return caf::make_error(caf::sec::cannot_open_port, "the network is shutting down", local.host,
                           port);
  return made;
}

caf::expected<caf::io::scribe_ptr> multiplexer::new_tcp_scribe(const std::string& host,
                                                               uint16_t port) {
  if (!uses_rdma())
    return default_multiplexer::new_tcp_scribe(host, port);
  auto code = caf::sec::cannot_connect_to_node;
  if (!ready_)
    return to_caf(code, ready_.error(), host, port);
  auto addresses = resolve({host, port});
  if (!addresses)
    return to_caf(code, addresses.error(), host, port);
  error last;
  for (auto& address : *addresses) {
    auto connected = connect_stream(address);
    if (connected)
      return std::move(*connected);
    last = connected.error();
    log_for("transport")->debug("connect to {}: {}", to_string(address), last.text());
  }
  return to_caf(code, last, host, port);
}

result<caf::io::scribe_ptr> multiplexer::connect_stream(const endpoint& numeric) {
  using outcome = result<caf::io::scribe_ptr>;
  auto answer = std::make_shared<std::promise<outcome>>();
  auto arrived = answer->get_future();
  auto shutting_down = fail(errc::disconnected, "the network is shutting down");
  if (!call_on_loop([this, numeric, answer] {
        start_connecting(numeric, [answer](outcome how) { answer->set_value(std::move(how)); });
      }))
    return shutting_down;
  while (arrived.wait_for(std::chrono::milliseconds{100}) != std::future_status::ready)
    if (ended_.load())
      return shutting_down;
  return arrived.get();
}

void multiplexer::start_connecting(const endpoint& remote,
                                   std::function<void(result<caf::io::scribe_ptr>)> done) {
  auto scribe = new_stream_scribe();
  auto on_ready = [this, scribe, done](const error& how) {
    if (how) {
      release(*scribe);
      done(fail(how));
    } else {
      done(caf::io::scribe_ptr{scribe});
    }
  };
  auto stream = channel::connect(*engine_, remote, settings_.channels, settings_.connect_timeout,
                                 std::move(on_ready));
  if (!stream) {
    release(*scribe);
    return done(fail(stream.error()));
  }
  scribe->attach(std::move(*stream));
}

multiplexer::scribe_handle multiplexer::new_stream_scribe() {
  auto handle = caf::io::connection_handle::from_int(++last_handle_);
  auto scribe = caf::make_counted<stream_scribe>(*this, handle);
  scribes_.insert(scribe);
  return scribe;
}

void multiplexer::accept(stream_doorman& doorman, std::unique_ptr<connection_request> request) {
  auto refuse = [&](const error& why) {
    log_for("transport")
        ->warn("connection from {} refused: {}", to_string(request->peer()), why.text());
    request->reject(encode(hello{})); // tells a peer of another version which one this is
  };
  auto theirs = decode_hello(request->private_data());
  if (!theirs)
    return refuse(theirs.error());
  if (theirs->kind == connection_kind::memory)
    return memory_->on_request(*request, *theirs);
  auto scribe = new_stream_scribe();
  caf::intrusive_ptr<stream_doorman> door{&doorman};
  auto on_ready = [this, scribe, door](const error& how) {
    if (how)
      release(*scribe);
    else if (!door->announce(scribe))
      scribe->graceful_shutdown();
  };
  auto stream =
      channel::accept(*engine_, *request, *theirs, settings_.channels, std::move(on_ready));
  if (!stream) {
    release(*scribe);
    return refuse(stream.error());
  }
  scribe->attach(std::move(*stream));
}

void multiplexer::unlisten(std::unique_ptr<listener> which) {
  if (ended_.load() || std::this_thread::get_id() == thread_id())
    engine_->unlisten(std::move(which));
  else
    post([this, port = std::move(which)]() mutable { engine_->unlisten(std::move(port)); });
}

void multiplexer::transmit_later(stream_scribe& scribe) {
  dirty_.emplace_back(&scribe);
}

void multiplexer::release(stream_scribe& scribe) {
  scribe_handle handle{&scribe};
  scribes_.erase(handle);
  dying_.push_back(std::move(handle));
}

// -- what runs on the loop
// ------------------------------------------------------------------------------

void multiplexer::exec_later(caf::resumable* ptr) {
  if (!engine_)
    return default_multiplexer::exec_later(ptr);
  switch (ptr->subtype()) {
  case caf::resumable::io_actor:
  case caf::resumable::function_object:
    if (std::this_thread::get_id() == thread_id()) {
      local_.push_back(ptr);
    } else {
      posted_.push(ptr);
      engine_->notify();
    }
    break;
  default:
    // A handler may block (a nested `request(...).receive`, say): only CAF's scheduler can afford
    // that.
    system().scheduler().enqueue(ptr);
  }
}

void multiplexer::resume_one(caf::resumable* ptr) {
  switch (ptr->resume(this, max_throughput_)) {
  case caf::resumable::resume_later:
    local_.push_back(ptr);
    break;
  case caf::resumable::shutdown_execution_unit:
    break;
  default:
    caf::intrusive_ptr_release(ptr);
  }
}

bool multiplexer::run_posted() {
  posted_.take_all(local_);
  if (local_.empty())
    return false;
  running_.swap(local_); // what they post runs in the next turn
  for (auto ptr : running_)
    resume_one(ptr);
  running_.clear();
  handle_internal_events();
  return true;
}

bool multiplexer::turn() {
  auto busy = engine_->turn();
  busy = run_posted() || busy;
  for (auto& scribe : std::exchange(dirty_, {}))
    scribe->transmit();
  dying_.clear();
  return busy;
}

void multiplexer::sleep() {
  engine_->prepare_to_sleep();
  if (!turn())
    poll_once(true);
  engine_->awake();
}

bool multiplexer::try_run_once() {
  if (!engine_)
    return default_multiplexer::try_run_once();
  watch_engine();
  auto busy = poll_once(false);
  return turn() || busy;
}

void multiplexer::run_once() {
  if (!engine_)
    return default_multiplexer::run_once();
  watch_engine();
  if (!turn())
    sleep();
}

void multiplexer::run() {
  if (!engine_)
    return default_multiplexer::run();
  watch_engine();
  unsigned turns = 0;
  while (!finished()) {
    if (!turn())
      sleep();
    else if (++turns % turns_between_socket_looks == 0)
      poll_once(false);
  }
  if (!scribes_.empty())
    log_for("transport")
        ->warn("{} connections did not take all that was sent before the end", scribes_.size());
  for (auto& scribe : std::exchange(scribes_, {}))
    scribe->drop();
  turn();
  unwatch_engine();
  ended_.store(true);
}

// -- start and stop
// -------------------------------------------------------------------------------------

void multiplexer::watch_engine() {
  if (!watches_.empty())
    return;
  for (auto fd : engine_->fds())
    watches_.push_back(std::make_unique<engine_watch>(*this, fd));
  handle_internal_events();
  idle_handlers_ = num_socket_handlers();
}

void multiplexer::unwatch_engine() {
  for (auto& watch : watches_)
    del(network::operation::read, watch->fd(), watch.get());
  handle_internal_events();
  watches_.clear();
}

multiplexer::supervisor_ptr multiplexer::make_supervisor() {
  if (!engine_)
    return default_multiplexer::make_supervisor();
  class impl final : public supervisor {
  public:
    explicit impl(multiplexer& owner) : owner_(owner) {}
    ~impl() override {
      auto owner = &owner_;
      owner->dispatch([owner] { owner->begin_to_stop(); });
    }

  private:
    multiplexer& owner_;
  };
  return supervisor_ptr{new impl{*this}};
}

void multiplexer::begin_to_stop() {
  stopping_ = true;
  stop_deadline_ = engine::clock::now() + settings_.shutdown_timeout;
  engine_->after(settings_.shutdown_timeout, [] {}); // so that the loop wakes to see it
}

bool multiplexer::finished() {
  if (!stopping_)
    return false;
  auto idle = scribes_.empty() && local_.empty() && posted_.empty() &&
              num_socket_handlers() <= idle_handlers_;
  return idle || engine::clock::now() >= stop_deadline_;
}

} // namespace troupe::transport
