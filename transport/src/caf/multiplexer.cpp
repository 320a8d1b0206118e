#include "caf/multiplexer.hpp"

#include "caf/stream_doorman.hpp"
#include "caf/stream_scribe.hpp"
#include "troupe/transport/log.hpp"
#include "troupe/transport/resolve.hpp"

#include <caf/actor_system_config.hpp>
#include <caf/defaults.hpp>
#include <caf/scheduled_actor.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>
#include <future>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace troupe::transport {

namespace {

namespace network = caf::io::network;

constexpr unsigned turns_between_socket_looks = 16;
constexpr size_t messages_per_turn = 64; // of one handler, before the network has its turn
constexpr std::chrono::milliseconds watch_period{2}; // a handler that takes longer loses the loop

// Whether this thread is in a handler that the loop runs. It may lose the loop at any moment then,
// so that nothing of it may be touched.
thread_local bool in_handler = false;

/// What a handler on the loop sees as its execution unit. Everything goes through the queue for
/// other threads: by the time that the handler asks, its thread may be one.
class handler_unit final : public caf::execution_unit {
public:
  explicit handler_unit(multiplexer& owner) : execution_unit(&owner.system()), owner_(owner) {}
  void exec_later(caf::resumable* ptr) override { owner_.exec_later(ptr); }

private:
  multiplexer& owner_;
};

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
  return caf::make_error(code, e.text(), host, port, static_cast<uint8_t>(e.code()));
}

} // namespace

multiplexer::multiplexer(caf::actor_system* system)
    : default_multiplexer(system),
      max_throughput_(caf::get_or(system->config(), "scheduler.max-throughput",
                                  caf::defaults::scheduler::max_throughput)),
      times_out_(caf::get_or(system->config(), "middleman.heartbeat-interval",
                             caf::defaults::middleman::heartbeat_interval) > caf::timespan{}),
      role_(watch_period) {}

multiplexer::~multiplexer() {
  posted_.take_all(runnable_);
  for (; next_runnable_ < runnable_.size(); ++next_runnable_)
    caf::scheduler::abstract_coordinator::cleanup_and_release(runnable_[next_runnable_]);
}

void multiplexer::open(settings chosen) {
  settings_ = std::move(chosen);
  spinning_ = spin_policy{settings_.spin_window};
  auto opened = settings_.key.and_then(
      [this](auto& key) { return engine::open(settings_.device, std::move(key)); });
  if (!opened) {
    log_for("transport")->error("no device: {}", opened.error().text());
    ready_ = fail(opened.error());
    return;
  }
  engine_ = std::move(*opened);
  memory_ = std::make_unique<memory_service>(*engine_);
  log_for("transport")->info("device {}: {}", engine_->adapter().name(), engine_->choice());
  if (!engine_->admission().key())
    log_for("transport")
        ->info("there is no key: listening on loopback addresses only, and letting "
               "in processes of this user only");
}

// -- publish and connect
// ------------------------------------------------------------------------------

bool multiplexer::uses_rdma() const noexcept {
  return std::this_thread::get_id() == rdma_thread_.load(std::memory_order_acquire);
}

bool multiplexer::on_loop() const noexcept {
  return !in_handler && role_.mine();
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
  scribes_.emplace(handle, scribe);
  std::lock_guard held{boxes_mutex_};
  boxes_.emplace(handle, scribe->box());
  return scribe;
}

void multiplexer::accept(stream_doorman& doorman, std::unique_ptr<connection_request> request) {
  auto whom = engine_->admission().admit(*request);
  if (!whom)
    return;
  if (whom->theirs.kind == connection_kind::memory)
    return memory_->on_request(*request, *whom);
  auto scribe = new_stream_scribe();
  caf::intrusive_ptr<stream_doorman> door{&doorman};
  auto on_ready = [this, scribe, door](const error& how) {
    if (how)
      release(*scribe);
    else if (!door->announce(scribe))
      scribe->graceful_shutdown();
  };
  auto stream = channel::accept(*engine_, *request, *whom, settings_.channels, std::move(on_ready));
  if (!stream) {
    release(*scribe);
    log_for("transport")
        ->warn("connection from {} refused: {}", to_string(request->peer()), stream.error().text());
    return;
  }
  scribe->attach(std::move(*stream));
}

void multiplexer::unlisten(std::unique_ptr<listener> which) {
  if (ended_.load() || on_loop())
    engine_->unlisten(std::move(which));
  else
    post([this, port = std::move(which)]() mutable { engine_->unlisten(std::move(port)); });
}

void multiplexer::transmit_later(stream_scribe& scribe) {
  dirty_.emplace_back(&scribe);
}

void multiplexer::release(stream_scribe& scribe) {
  dying_.emplace_back(&scribe);
  scribes_.erase(scribe.hdl());
  std::lock_guard held{boxes_mutex_};
  boxes_.erase(scribe.hdl());
}

void multiplexer::transmit_soon(caf::io::connection_handle connection) {
  filled_.push(connection);
  engine_->notify();
}

std::shared_ptr<outbox> multiplexer::outbox_of(caf::io::connection_handle connection) {
  std::lock_guard held{boxes_mutex_};
  auto found = boxes_.find(connection);
  return found == boxes_.end() ? nullptr : found->second;
}

// -- what runs on the loop
// ------------------------------------------------------------------------------

void multiplexer::exec_later(caf::resumable* ptr) {
  if (!engine_)
    return default_multiplexer::exec_later(ptr);
  if (on_loop()) {
    runnable_.push_back(ptr);
  } else {
    posted_.push(ptr);
    engine_->notify();
  }
}

void multiplexer::run_own(caf::resumable* ptr) {
  switch (ptr->resume(this, max_throughput_)) {
  case caf::resumable::resume_later:
    runnable_.push_back(ptr);
    break;
  case caf::resumable::shutdown_execution_unit:
    break;
  default:
    caf::intrusive_ptr_release(ptr);
  }
}

/// Gives an actor its turn, here or in CAF's scheduler. @returns false when this thread has lost
/// the loop.
bool multiplexer::run_handler(caf::resumable* ptr) {
  auto begin = engine::clock::now();
  auto actor = static_cast<caf::scheduled_actor*>(ptr)->id();
  if (!settings_.run_handlers || role_.unwatched() || !budget_.admits(actor, begin)) {
    system().scheduler().enqueue(ptr);
    return true;
  }
  thread_local handler_unit unit{*this};
  handling_ = actor;
  auto step = role_.enter_handler();
  in_handler = true;
  auto outcome = ptr->resume(&unit, std::min(max_throughput_, messages_per_turn));
  in_handler = false;
  auto kept = role_.leave_handler(step);
  if (kept) {
    auto end = engine::clock::now();
    budget_.ran(actor, end - begin, end);
  }
  switch (outcome) {
  case caf::resumable::resume_later:
    if (kept)
      runnable_.push_back(ptr);
    else
      system().scheduler().enqueue(ptr);
    break;
  case caf::resumable::shutdown_execution_unit:
    break;
  default:
    caf::intrusive_ptr_release(ptr);
  }
  return kept;
}

/// @returns false when this thread has lost the loop.
bool multiplexer::run_next_aside() {
  auto job = std::move(aside_.front());
  aside_.pop_front();
  handler_unit unit{*this};
  handling_ = caf::invalid_actor_id;
  auto step = role_.enter_handler();
  in_handler = true;
  job(unit);
  job = nullptr; // what it holds may take long as well
  in_handler = false;
  return role_.leave_handler(step);
}

multiplexer::pass multiplexer::run_runnable() {
  posted_.take_all(runnable_);
  if (runnable_.empty() && aside_.empty())
    return pass::idle;
  while (!aside_.empty())
    if (!run_next_aside())
      return pass::lost;
  budget_.begin_turn();
  // What they make runnable has its turn after the next look at the network.
  for (auto end = runnable_.size(); next_runnable_ < end;) {
    auto ptr = runnable_[next_runnable_++];
    if (ptr->subtype() == caf::resumable::scheduled_actor) {
      if (!run_handler(ptr))
        return pass::lost;
    } else {
      run_own(ptr);
    }
  }
  runnable_.erase(runnable_.begin(), runnable_.begin() + static_cast<ptrdiff_t>(next_runnable_));
  next_runnable_ = 0;
  handle_internal_events();
  return pass::busy;
}

multiplexer::pass multiplexer::turn() {
  auto busy = engine_->turn();
  auto ran = run_runnable();
  if (ran == pass::lost)
    return ran;
  busy = transmit() || busy;
  return busy ? pass::busy : ran;
}

/// Sends what was written in this turn: all of a connection together.
bool multiplexer::transmit() {
  auto any = filled_.take_all(filled_now_);
  for (auto connection : filled_now_)
    if (auto found = scribes_.find(connection); found != scribes_.end())
      found->second->transmit();
  filled_now_.clear();
  dirty_.swap(dirty_now_);
  for (auto& scribe : dirty_now_)
    scribe->transmit();
  dirty_now_.clear();
  dying_.clear();
  return any;
}

multiplexer::pass multiplexer::spin() {
  auto window = spinning_.next();
  if (window == window.zero())
    return pass::idle;
  for (auto end = engine::clock::now() + window; engine::clock::now() < end;) {
    auto found = turn();
    if (found == pass::lost)
      return found;
    if (found == pass::busy) {
      spinning_.paid();
      return found;
    }
    std::this_thread::yield(); // to whoever has work, if the machine is short of processors
  }
  spinning_.in_vain();
  return pass::idle;
}

multiplexer::pass multiplexer::sleep() {
  engine_->prepare_to_sleep();
  auto found = turn();
  if (found == pass::lost)
    return found;
  if (found == pass::idle) {
    auto begin = engine::clock::now();
    poll_once(true);
    spinning_.slept(engine::clock::now() - begin);
  }
  engine_->awake();
  return pass::busy;
}

bool multiplexer::try_run_once() {
  if (!engine_)
    return default_multiplexer::try_run_once();
  role_.claim();
  watch_engine();
  auto busy = poll_once(false);
  return turn() == pass::busy || busy;
}

void multiplexer::run_once() {
  if (!engine_)
    return default_multiplexer::run_once();
  role_.claim();
  watch_engine();
  if (turn() == pass::idle)
    sleep();
}

void multiplexer::run() {
  if (!engine_)
    return default_multiplexer::run();
  role_.claim();
  watch_engine();
  keep_watched();
  if (!lead())
    stand_by();
  // Whoever found that the loop is finished has ended it; nobody adds threads any more.
  std::vector<std::thread> threads;
  {
    std::lock_guard held{threads_mutex_};
    threads.swap(threads_);
  }
  for (auto& each : threads)
    each.join();
}

/// Runs the loop on this thread, which has the role. @returns true when the loop is over, false
/// when the role was lost.
bool multiplexer::lead() {
  unsigned turns = 0;
  while (!finished()) {
    auto found = turn();
    if (found == pass::idle)
      found = spin();
    if (found == pass::idle)
      found = sleep();
    else if (found == pass::busy && ++turns % turns_between_socket_looks == 0)
      poll_once(false);
    if (found == pass::lost)
      return false;
  }
  end();
  return true;
}

/// Takes the loop over whenever a handler keeps it, until it is over.
void multiplexer::stand_by() {
  while (role_.stand_by()) {
    log_for("transport")
        ->debug("actor {} keeps the loop: another thread goes on with it", handling_);
    budget_.overran(handling_, engine::clock::now());
    engine_->awake(); // the handler may have begun in the turn before a sleep
    keep_watched();
    if (lead())
      return;
  }
}

/// A handler may keep the loop from now on: sees to it that somebody would notice.
void multiplexer::keep_watched() {
  if (!settings_.run_handlers || !may_add_threads_ || !role_.unwatched())
    return;
  try {
    std::lock_guard held{threads_mutex_};
    threads_.emplace_back([this] { stand_by(); });
  } catch (const std::system_error& e) {
    may_add_threads_ = false;
    log_for("transport")
        ->warn("actors run on CAF's scheduler only: no thread to watch the loop: {}", e.what());
  }
}

/// The loop is over.
void multiplexer::end() {
  settings_.run_handlers = false;
  if (!scribes_.empty())
    log_for("transport")
        ->warn("{} connections did not take all that was sent before the end", scribes_.size());
  for (auto& [handle, scribe] : std::exchange(scribes_, {}))
    scribe->drop();
  turn();
  unwatch_engine();
  ended_.store(true);
  role_.close();
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
      owner->post([owner] { owner->begin_to_stop(); });
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
  auto idle = scribes_.empty() && runnable_.empty() && posted_.empty() && filled_.empty() &&
              num_socket_handlers() <= idle_handlers_;
  return idle || engine::clock::now() >= stop_deadline_;
}

} // namespace troupe::transport
