#include "troupe/transport/memory_link.hpp"

#include "dialer.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace troupe::transport {

namespace {

constexpr uint64_t notice_id = 0; // of every posted receive; operations count from 1

// The connecting side's first word. On iWARP the accepting side must not send before it has heard
// (RFC 5044, 7.1), so there the link is open only then.
constexpr uint32_t greeting = UINT32_MAX;

} // namespace

memory_link::memory_link(engine& loop, const memory_link_options& options, events handlers)
    : loop_(loop), options_(options), handlers_(std::move(handlers)) {}

memory_link::~memory_link() {
  if (!ended_)
    loop_.retire(std::move(pair_), queues_, nullptr);
}

result<std::unique_ptr<memory_link>> memory_link::connect(engine& loop, const endpoint& remote,
                                                          uint64_t token,
                                                          const memory_link_options& options,
                                                          std::chrono::milliseconds timeout,
                                                          events handlers) {
  auto queues = loop.reserve_queues(options.operations, options.notices);
  if (!queues)
    return fail(queues.error());
  std::unique_ptr<memory_link> made{new memory_link{loop, options, std::move(handlers)}};
  made->queues_ = *queues;
  made->connects_ = true;
  auto on_pair = [self = made.get()](std::unique_ptr<queue_pair> pair) {
    self->pair_ = std::move(pair);
    return self->post_notice_receives();
  };
  connection_terms ours{connection_kind::memory, 0, 0, token};
  made->dialer_ = std::make_unique<dialer>(loop, remote, ours, made->queues_, timeout, *made,
                                           std::move(on_pair));
  if (auto started = made->dialer_->start(); !started)
    return fail(started.error());
  return made;
}

result<std::unique_ptr<memory_link>> memory_link::accept(engine& loop, connection_request& request,
                                                         const gate::admission& whom,
                                                         const memory_link_options& options,
                                                         events handlers) {
  auto queues = loop.reserve_queues(options.operations, options.notices);
  if (!queues) {
    request.reject(gate::refuse(refusal::no_room));
    return fail(queues.error());
  }
  std::unique_ptr<memory_link> made{new memory_link{loop, options, std::move(handlers)}};
  made->queues_ = *queues;
  auto welcome = loop.admission().welcome(whom, {connection_kind::memory, 0, 0, 0});
  auto pair = request.accept(*queues, welcome);
  if (!pair)
    return fail(pair.error());
  made->pair_ = std::move(*pair);
  made->pair_->owner = static_cast<connection_handler*>(made.get());
  if (auto posted = made->post_notice_receives(); !posted)
    return fail(posted.error());
  return made;
}

status memory_link::post_notice_receives() {
  for (uint32_t i = 0; i < queues_.receive_depth; ++i)
    if (auto posted = pair_->post_receive(notice_id, {}); !posted)
      return posted;
  return {};
}

// -- operations
// ---------------------------------------------------------------------------------------

void memory_link::read(local_slice into, remote_address from, answer done) {
  submit({.op = opcode::read, .local = into, .remote = from}, std::move(done));
}

void memory_link::write(local_slice from, remote_address into, answer done) {
  submit({.op = opcode::write, .local = from, .remote = into}, std::move(done));
}

void memory_link::write_notify(local_slice from, remote_address into, uint32_t notice,
                               answer done) {
  submit({.op = opcode::write_notify, .local = from, .remote = into, .immediate = notice},
         std::move(done));
}

void memory_link::fetch_add(local_slice old_value, remote_address at, uint64_t operand,
                            answer done) {
  submit({.op = opcode::fetch_add, .local = old_value, .remote = at, .operand = operand},
         std::move(done));
}

void memory_link::compare_swap(local_slice old_value, remote_address at, uint64_t expected,
                               uint64_t desired, answer done) {
  submit({.op = opcode::compare_swap,
          .local = old_value,
          .remote = at,
          .operand = expected,
          .swap = desired},
         std::move(done));
}

/// Queues `work` in pieces that the device can carry; only the last piece is answered (and gives
/// notice).
void memory_link::submit(const work_request& work, answer done) {
  if (ended_) {
    done(fail(errc::disconnected, "the connection for remote memory is closed"));
    return;
  }
  auto most = loop_.adapter().limits().max_message;
  auto piece = work;
  auto rest = work.local.length;
  while (rest > most) {
    piece.op = work.op == opcode::read ? opcode::read : opcode::write;
    piece.local.length = most;
    waiting_.push_back({piece, nullptr});
    piece.local.offset += most;
    piece.remote.address += most;
    rest -= most;
  }
  piece.op = work.op;
  piece.local.length = rest;
  waiting_.push_back({piece, std::move(done)});
  pump();
}

void memory_link::pump() {
  while (open_ && !waiting_.empty() && in_flight_.size() < queues_.send_depth) {
    auto next = std::move(waiting_.front());
    waiting_.pop_front();
    next.work.id = ++last_id_;
    if (auto posted = pair_->post(next.work); !posted) {
      if (posted.error().code() == errc::no_resources) {
        waiting_.push_front(std::move(next)); // a completion brings us back here
        return;
      }
      if (next.done)
        next.done(fail(posted.error()));
      continue;
    }
    in_flight_.emplace(next.work.id, std::move(next.done));
  }
}

// -- what comes back
// ------------------------------------------------------------------------------------

void memory_link::on_completion(const completion& done) {
  if (done.id == notice_id) {
    if (done.status != errc::none)
      return; // flushed: `on_closed` says why
    if (auto posted = pair_->post_receive(notice_id, {}); !posted)
      return end_with(posted.error());
    if (!connects_ && !open_)
      return open_up(); // whatever the first word is, it only greets
    if (done.has_immediate && handlers_.notice)
      handlers_.notice(done.immediate);
    return;
  }
  auto found = in_flight_.find(done.id);
  if (found == in_flight_.end())
    return;
  auto tell = std::move(found->second);
  in_flight_.erase(found);
  if (tell) {
    if (done.status == errc::none)
      tell({});
    else
      tell(fail(done.status, std::string{to_string(done.op)} + " of memory at " +
                                 to_string(peer()) +
                                 " failed: " + std::string{to_string(done.status)}));
  }
  pump();
}

void memory_link::on_established(byte_view private_data) {
  if (!connects_)
    return;
  if (auto theirs = dialer_->conclude(private_data, *pair_); !theirs)
    return end_with(theirs.error());
  dialer_.reset();
  work_request word;
  word.op = opcode::write_notify;
  word.id = ++last_id_;
  word.immediate = greeting;
  if (auto posted = pair_->post(word); !posted)
    return end_with(posted.error());
  in_flight_.emplace(word.id, nullptr);
  open_up();
}

void memory_link::open_up() {
  open_ = true;
  if (handlers_.opened)
    handlers_.opened();
  pump();
}

void memory_link::on_closed(const error& reason, byte_view private_data) {
  end_with(dialer_ ? dialer_->explain(reason, private_data) : reason);
}

void memory_link::end_with(const error& reason) {
  if (std::exchange(ended_, true))
    return;
  open_ = false;
  loop_.retire(std::move(pair_), queues_, nullptr);
  auto unanswered = std::exchange(in_flight_, {});
  auto unsent = std::exchange(waiting_, {});
  for (auto& [id, tell] : unanswered)
    if (tell)
      tell(fail(reason));
  for (auto& entry : unsent)
    if (entry.done)
      entry.done(fail(reason));
  if (auto closed = std::exchange(handlers_.closed, nullptr))
    closed(reason);
}

} // namespace troupe::transport
