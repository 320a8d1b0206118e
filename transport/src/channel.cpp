#include "troupe/transport/channel.hpp"

#include "dialer.hpp"
#include "troupe/transport/log.hpp"
#include "wire.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace troupe::transport {

namespace {

constexpr size_t header_bytes = 8;
constexpr size_t rendezvous_body_bytes = 24;
constexpr size_t done_body_bytes = 4;
constexpr size_t attached_entry_bytes = 24;
constexpr size_t most_attachments = 64 * 1024; // announced and not read
constexpr size_t prefix_bytes = 256;           // of a segment, sent along with its announcement
constexpr size_t bounce_bytes = 256 * 1024;
constexpr uint32_t most_reads = 8;
constexpr size_t most_spare_bytes = 8 * 1024 * 1024;
constexpr size_t smallest_frame = header_bytes + rendezvous_body_bytes + prefix_bytes;

// A completion's id: what it belongs to in the upper half, which one in the lower.
constexpr uint64_t receive_tag = 1ULL << 60;
constexpr uint64_t send_tag = 2ULL << 60;
constexpr uint64_t read_tag = 3ULL << 60;
constexpr uint64_t tag_mask = 0xFULL << 60;

bool make_sense(const connection_terms& theirs) {
  return theirs.kind == connection_kind::stream && theirs.receive_slabs >= 2 &&
         theirs.slab_bytes >= smallest_frame;
}

} // namespace

// -- set-up
// -----------------------------------------------------------------------------------------

channel::channel(engine& loop, const channel_options& options, ready_handler on_ready)
    : loop_(loop), options_(options), on_ready_(std::move(on_ready)) {}

channel::~channel() {
  if (state_ != state::ended)
    retire();
}

result<std::unique_ptr<channel>> channel::connect(engine& loop, const endpoint& remote,
                                                  const channel_options& options,
                                                  std::chrono::milliseconds timeout,
                                                  ready_handler on_ready) {
  std::unique_ptr<channel> made{new channel{loop, options, std::move(on_ready)}};
  if (auto prepared = made->prepare(); !prepared)
    return fail(prepared.error());
  made->connects_ = made->may_speak_ = true;
  auto on_pair = [self = made.get()](std::unique_ptr<queue_pair> pair) {
    self->pair_ = std::move(pair);
    return self->post_slabs();
  };
  made->dialer_ = std::make_unique<dialer>(loop, remote, made->our_terms(), made->queues_, timeout,
                                           *made, std::move(on_pair));
  if (auto started = made->dialer_->start(); !started)
    return fail(started.error());
  return made;
}

result<std::unique_ptr<channel>> channel::accept(engine& loop, connection_request& request,
                                                 const gate::admission& whom,
                                                 const channel_options& options,
                                                 ready_handler on_ready) {
  auto& theirs = whom.theirs;
  if (!make_sense(theirs)) {
    request.reject(gate::refuse(refusal::bad_terms));
    return fail(errc::protocol_violation,
                "the peer offers " + std::to_string(theirs.receive_slabs) + " receive buffers of " +
                    std::to_string(theirs.slab_bytes) + " bytes, which is too little");
  }
  std::unique_ptr<channel> made{new channel{loop, options, std::move(on_ready)}};
  if (auto prepared = made->prepare(); !prepared) {
    request.reject(gate::refuse(refusal::no_room));
    return fail(prepared.error());
  }
  auto pair = request.accept(made->queues_, loop.admission().welcome(whom, made->our_terms()));
  if (!pair)
    return fail(pair.error());
  made->pair_ = std::move(*pair);
  made->pair_->owner = static_cast<connection_handler*>(made.get());
  made->accept_terms(theirs);
  if (auto posted = made->post_slabs(); !posted)
    return fail(posted.error());
  return made;
}

status channel::prepare() {
  auto queues = loop_.reserve_queues(options_.slabs + most_reads + 1U, options_.slabs);
  if (!queues)
    return fail(queues.error());
  queues_ = *queues;
  auto receive = loop_.adapter().allocate(options_.slabs * options_.slab_bytes, access::local);
  if (!receive)
    return fail(receive.error());
  memory_->receive = std::move(*receive);
  auto send = loop_.adapter().allocate(options_.slabs * options_.slab_bytes, access::local);
  if (!send)
    return fail(send.error());
  memory_->send = std::move(*send);
  for (uint32_t slab = options_.slabs; slab > 0; --slab)
    free_send_slabs_.push_back(slab - 1);
  return {};
}

status channel::post_slabs() {
  for (uint32_t slab = 0; slab < options_.slabs; ++slab)
    if (auto posted = post_slab(slab); !posted)
      return posted;
  return {};
}

connection_terms channel::our_terms() const {
  return {connection_kind::stream, options_.slabs, static_cast<uint32_t>(options_.slab_bytes), 0};
}

void channel::accept_terms(const connection_terms& theirs) {
  credits_ = peer_slabs_ = theirs.receive_slabs;
  frame_bytes_ = std::min<size_t>(theirs.slab_bytes, options_.slab_bytes);
}

void channel::tell_ready(const error& how) {
  if (auto handler = std::exchange(on_ready_, nullptr))
    handler(how);
}

void channel::on_established(byte_view private_data) {
  if (peer_slabs_ == 0) { // connecting side: the terms are in the acceptor's answer
    auto theirs = dialer_->conclude(private_data, *pair_);
    if (!theirs)
      return end_with(theirs.error());
    if (!make_sense(*theirs))
      return end_with(
          {errc::protocol_violation, "the peer accepted with terms that make no sense"});
    accept_terms(*theirs);
    dialer_.reset();
  }
  if (state_ == state::connecting)
    state_ = state::open;
  if (connects_ && !post_frame(frame::credit, 0)) // the first word, see `may_speak_`
    return;
  tell_ready({});
  for (auto [slab, length] : std::exchange(early_, {}))
    if (state_ != state::ended)
      on_frame(slab, length);
  pump();
}

// -- the end
// ------------------------------------------------------------------------------------------

void channel::on_closed(const error& reason, byte_view private_data) {
  end_with(dialer_ ? dialer_->explain(reason, private_data) : reason);
}

void channel::end_with(const error& reason) {
  if (state_ == state::ended)
    return;
  if (reason.code() != errc::disconnected)
    log_for("transport")->debug("channel with {}: {}", to_string(peer()), reason.text());
  retire();
  tell_ready(reason);
  if (auto who = std::exchange(reader_, nullptr))
    who->on_end(reason);
  if (on_drained_)
    loop_.after({}, std::exchange(on_drained_, nullptr));
}

void channel::retire() {
  state_ = state::ended;
  waiting_.clear();
  copied_.clear();
  arrivals_.clear();
  attachments_.clear();
  fetching_.reset();
  backlog_ = 0;
  target_ = {};
  loop_.retire(std::move(pair_), queues_, std::move(memory_));
}

void channel::close(std::function<void()> on_closed) {
  reader_ = nullptr;
  on_ready_ = nullptr;
  if (state_ == state::ended) {
    loop_.after({}, std::move(on_closed));
    return;
  }
  on_drained_ = std::move(on_closed);
  if (state_ == state::connecting)
    return end_with({errc::disconnected, "closed before it was connected"});
  state_ = state::draining;
  discard_arrivals();
  pump();
}

void channel::finish_if_drained() {
  if (state_ != state::draining || !waiting_.empty() || !memory_->offers.empty() ||
      !dones_.empty() || sends_in_flight_ > 0 || reads_in_flight_ > 0)
    return;
  pair_->disconnect();
  end_with({errc::disconnected, "closed"});
}

// -- sending
// ------------------------------------------------------------------------------------------

void channel::send(std::vector<char>& segment, std::vector<attachment> attached) {
  if (segment.empty())
    return;
  if (state_ == state::ended || state_ == state::draining) {
    segment.clear();
    return;
  }
  backlog_ += segment.size();
  for (auto& each : attached)
    backlog_ += each.bytes.size();
  waiting_.push_back({std::move(segment), std::move(attached)});
  segment = {};
  if (!spare_.empty()) {
    spare_bytes_ -= spare_.back().capacity();
    segment = std::move(spare_.back());
    spare_.pop_back();
  }
  pump();
}

byte_span channel::frame_body() const {
  auto slab = memory_->send->bytes().subspan(free_send_slabs_.back() * options_.slab_bytes,
                                             options_.slab_bytes);
  return slab.subspan(header_bytes, frame_bytes_ - header_bytes);
}

bool channel::post_frame(frame kind, size_t body_bytes) {
  auto index = free_send_slabs_.back();
  auto offset = index * options_.slab_bytes;
  auto slab = memory_->send->bytes().subspan(offset);
  store(slab, 0, kind);
  store(slab, 1, uint8_t{0});
  store(slab, 2, static_cast<uint16_t>(owed_));
  store(slab, 4, static_cast<uint32_t>(body_bytes));
  auto length = header_bytes + body_bytes;
  work_request work;
  work.id = send_tag | index;
  work.local = {memory_->send.get(), offset, length};
  work.inlined = length <= loop_.adapter().limits().max_inline;
  if (auto posted = pair_->post(work);
      !posted) { // the queue has room for every slab: a failure is final
    end_with(posted.error());
    return false;
  }
  free_send_slabs_.pop_back();
  ++sends_in_flight_;
  --credits_;
  owed_ = 0;
  return true;
}

void channel::pump() {
  while (may_speak_ && (state_ == state::open || state_ == state::draining) &&
         !free_send_slabs_.empty()) {
    // The last credit is spent only on a frame that gives one back; see the top of the header.
    if (credits_ == 0 || (credits_ == 1 && owed_ == 0))
      break;
    if (!dones_.empty()) {
      store(frame_body(), 0, dones_.front());
      if (!post_frame(frame::done, done_body_bytes))
        return;
      dones_.pop_front();
    } else if (!waiting_.empty()) {
      if (!waiting_.front().attached.empty()) {
        if (!announce_attached())
          return;
      } else if (goes_by_rendezvous(waiting_.front())) {
        if (!offer_front())
          return;
      } else if (!post_frame(frame::data, pack_waiting())) {
        return;
      }
    } else if (owed_ >= options_.slabs / 2U) {
      if (!post_frame(frame::credit, 0))
        return;
    } else {
      break;
    }
  }
  finish_if_drained();
}

/// Fills the next frame with what is waiting, up to a segment that goes by rendezvous.
size_t channel::pack_waiting() {
  auto body = frame_body();
  size_t packed = 0;
  while (packed < body.size() && !waiting_.empty()) {
    auto& front = waiting_.front();
    if (packed > 0 && (!front.attached.empty() || goes_by_rendezvous(front)))
      break;
    auto count = std::min(body.size() - packed, front.bytes.size() - front_sent_);
    std::memcpy(body.data() + packed, front.bytes.data() + front_sent_, count);
    packed += count;
    front_sent_ += count;
    if (front_sent_ == front.bytes.size()) {
      recycle(std::move(front.bytes));
      waiting_.pop_front();
      front_sent_ = 0;
    }
  }
  backlog_ -= packed;
  return packed;
}

bool channel::goes_by_rendezvous(const outgoing& what) const noexcept {
  return front_sent_ == 0 && !what.eager && what.bytes.size() >= options_.rendezvous_threshold;
}

/// Announces the segment at the front. @returns false when the channel can do no more now.
bool channel::offer_front() {
  auto& front = waiting_.front();
  auto region = loop_.adapter().register_memory(std::as_writable_bytes(std::span{front.bytes}),
                                                access::remote_read);
  if (!region) {
    log_for("transport")
        ->warn("a message of {} bytes is copied instead of read by RDMA: {}", front.bytes.size(),
               region.error().text());
    front.eager = true;
    return true;
  }
  auto remote = (*region)->remote();
  auto prefix = std::min(prefix_bytes, front.bytes.size());
  auto id = ++last_offer_;
  auto body = frame_body();
  store(body, 0, remote.address);
  store(body, 8, static_cast<uint64_t>(front.bytes.size()));
  store(body, 16, remote.key);
  store(body, 20, id);
  std::memcpy(body.data() + rendezvous_body_bytes, front.bytes.data(), prefix);
  if (!post_frame(frame::rendezvous, rendezvous_body_bytes + prefix))
    return false;
  memory_->offers.emplace(id, offer{std::move(front.bytes), {}, std::move(*region)});
  waiting_.pop_front();
  return true;
}

/// Announces attachments of the segment at the front, as many as a frame holds. @returns false when
/// the channel can do no more now.
bool channel::announce_attached() {
  auto& attached = waiting_.front().attached;
  auto body = frame_body();
  auto count = std::min(attached.size(), body.size() / attached_entry_bytes);
  std::vector<std::pair<uint32_t, offer>> offers;
  for (size_t i = 0; i < count; ++i) {
    auto& each = attached[i];
    byte_span bytes{const_cast<std::byte*>(each.bytes.data()), each.bytes.size()};
    auto region = loop_.adapter().register_memory(bytes, access::remote_read);
    remote_region remote{0, bytes.size(), 0};
    auto id = ++last_offer_;
    if (region) {
      remote = (*region)->remote();
      offers.emplace_back(id, offer{{}, std::move(each), std::move(*region)});
    } else {
      log_for("transport")
          ->warn("{} bytes of a message are copied instead of read by RDMA: {}", bytes.size(),
                 region.error().text());
      auto begin = reinterpret_cast<const char*>(bytes.data());
      copied_.push_back({{begin, begin + bytes.size()}, {}, true});
    }
    auto entry = body.subspan(i * attached_entry_bytes);
    store(entry, 0, remote.address);
    store(entry, 8, static_cast<uint64_t>(bytes.size()));
    store(entry, 16, remote.key);
    store(entry, 20, id);
  }
  if (!post_frame(frame::attached, count * attached_entry_bytes))
    return false;
  for (auto& each : offers)
    memory_->offers.emplace(each.first, std::move(each.second));
  attached.erase(attached.begin(), attached.begin() + static_cast<ptrdiff_t>(count));
  // The copies follow the segment. (A deque moves its elements onto themselves to insert nothing.)
  if (attached.empty() && !copied_.empty()) {
    waiting_.insert(waiting_.begin() + 1, std::make_move_iterator(copied_.begin()),
                    std::make_move_iterator(copied_.end()));
    copied_.clear();
  }
  return true;
}

void channel::recycle(std::vector<char> bytes) {
  if (spare_bytes_ + bytes.capacity() > most_spare_bytes)
    return;
  spare_bytes_ += bytes.capacity();
  bytes.clear();
  spare_.push_back(std::move(bytes));
}

// -- receiving
// ------------------------------------------------------------------------------------------

status channel::post_slab(uint32_t index) {
  return pair_->post_receive(
      receive_tag | index,
      {memory_->receive.get(), index * options_.slab_bytes, options_.slab_bytes});
}

void channel::on_completion(const completion& done) {
  if (state_ == state::ended)
    return;
  if (done.status != errc::none) {
    // Flushed work follows a cause that is reported by itself: the end of the connection, or the
    // first error.
    if (done.status != errc::flushed && done.status != errc::disconnected)
      end_with({done.status, "the connection with " + to_string(peer()) +
                                 " failed: " + std::string{to_string(done.op)} + " ended with " +
                                 std::string{to_string(done.status)}});
    return;
  }
  auto index = static_cast<uint32_t>(done.id);
  switch (done.id & tag_mask) {
  case receive_tag:
    if (peer_slabs_ == 0) // it overtook the event that says the connection stands
      early_.emplace_back(index, done.length);
    else
      on_frame(index, done.length);
    break;
  case send_tag:
    free_send_slabs_.push_back(index);
    --sends_in_flight_;
    pump();
    break;
  case read_tag:
    on_read_done(index);
    break;
  }
}

void channel::on_frame(uint32_t slab, size_t length) {
  auto violation = [this](const char* what) {
    end_with({errc::protocol_violation,
              std::string{"the peer at "} + to_string(peer()) + " broke the protocol: " + what});
  };
  if (length < header_bytes)
    return violation("a frame shorter than its header");
  auto offset = slab * options_.slab_bytes;
  auto bytes = memory_->receive->bytes().subspan(offset, length);
  auto kind = load<frame>(bytes, 0);
  auto credits = load<uint16_t>(bytes, 2);
  if (load<uint32_t>(bytes, 4) != length - header_bytes)
    return violation("a frame whose length lies");
  if (credits > peer_slabs_ - credits_)
    return violation("more credits than it has receive buffers");
  credits_ += credits;
  may_speak_ = true;
  auto body = bytes.subspan(header_bytes);
  arrival got;
  got.slab = slab;
  got.begin = offset + header_bytes;
  got.end = offset + length;
  switch (kind) {
  case frame::data:
    arrivals_.push_back(got);
    break;
  case frame::rendezvous: {
    if (body.size() < rendezvous_body_bytes)
      return violation("an announcement that is cut short");
    auto prefix = body.size() - rendezvous_body_bytes;
    auto total = load<uint64_t>(body, 8);
    if (total < prefix)
      return violation("an announcement that is shorter than its beginning");
    got.begin += rendezvous_body_bytes;
    got.announced = true;
    got.rest = {load<uint64_t>(body, 0) + prefix, total - prefix, load<uint32_t>(body, 16)};
    got.id = load<uint32_t>(body, 20);
    arrivals_.push_back(got);
    break;
  }
  case frame::done: {
    auto found = body.size() == done_body_bytes ? memory_->offers.find(load<uint32_t>(body, 0))
                                                : memory_->offers.end();
    if (found == memory_->offers.end())
      return violation("the end of a segment that was never announced");
    backlog_ -= found->second.size();
    found->second.region.reset();
    recycle(std::move(found->second.bytes));
    memory_->offers.erase(found);
    release_slab(got);
    break;
  }
  case frame::credit:
    release_slab(got);
    break;
  case frame::attached:
    if (body.empty() || body.size() % attached_entry_bytes != 0)
      return violation("attachments that are cut short");
    if (attachments_.size() + body.size() / attached_entry_bytes > most_attachments)
      return violation("more attachments than a connection may have");
    for (; !body.empty(); body = body.subspan(attached_entry_bytes)) {
      remote_region from{load<uint64_t>(body, 0), load<uint64_t>(body, 8),
                         load<uint32_t>(body, 16)};
      if (from.length == 0)
        return violation("an empty attachment");
      attachments_.push_back({from, load<uint32_t>(body, 20)});
    }
    release_slab(got);
    break;
  default:
    return violation("an unknown kind of frame");
  }
  if (state_ == state::draining)
    discard_arrivals();
  else
    deliver();
  pump();
}

void channel::release_slab(arrival& from) {
  from.holds_slab = false;
  if (auto posted = post_slab(from.slab); !posted)
    return end_with(posted.error());
  ++owed_;
}

void channel::read_with(reader& who) {
  reader_ = &who;
  resume();
}

void channel::resume() {
  if ((state_ != state::open && state_ != state::connecting) || delivering_)
    return;
  deliver();
  pump();
}

/// Notes that `bytes` more of the reader's buffer are there.
void channel::take(size_t bytes) {
  filled_ += bytes;
  if (filled_ < target_.size())
    return;
  target_ = {};
  filled_ = 0;
  if (fetching_)
    end_attachment();
  else
    reader_->on_filled();
}

void channel::deliver() {
  delivering_ = true;
  while (reader_ && !reading_ && !arrivals_.empty()) {
    if (fetching_ ? attachments_.front().from.key != 0 : fetch_awaited_)
      break; // the stream waits for attachments
    auto& front = arrivals_.front();
    auto in_slab = front.begin < front.end;
    auto ready =
        in_slab ? byte_view{memory_->receive->bytes()}.subspan(front.begin, front.end - front.begin)
        : bounce_begin_ < bounce_end_ ? byte_view{memory_->bounce->bytes()}.subspan(
                                            bounce_begin_, bounce_end_ - bounce_begin_)
                                      : byte_view{};
    size_t used = 0;  // by the reader, in place
    size_t taken = 0; // into its buffer
    if (target_.empty() && !ready.empty() && !fetching_)
      used = reader_->on_bytes(ready);
    if (used == 0) {
      if (!reader_)
        break;
      if (target_.empty())
        target_ = fetching_ ? fetching_->places[fetching_->next] : reader_->next_buffer();
      if (target_.empty())
        break;
      auto wanted = target_.subspan(filled_);
      if (!ready.empty()) {
        taken = std::min(wanted.size(), ready.size());
        std::memcpy(wanted.data(), ready.data(), taken);
      } else if (front.rest.length > 0) {
        start_read(front);
      }
    }
    if (state_ == state::ended)
      break;
    (in_slab ? front.begin : bounce_begin_) += ready.empty() ? 0 : used + taken;
    if (front.begin == front.end && front.holds_slab)
      release_slab(front);
    if (state_ == state::ended || state_ == state::draining)
      break;
    if (front.begin == front.end && front.rest.length == 0 && bounce_begin_ == bounce_end_ &&
        (!reading_ || reading_->attached)) {
      if (front.announced)
        dones_.push_back(front.id);
      arrivals_.pop_front();
    }
    if (taken > 0)
      take(taken);
  }
  delivering_ = false;
}

/// Frees what the peer sent and nobody will read.
void channel::discard_arrivals() {
  if (reading_)
    return; // comes back here when the read is done
  fetching_.reset();
  for (auto& each : std::exchange(attachments_, {}))
    if (each.from.key != 0)
      dones_.push_back(each.id);
  while (!arrivals_.empty() && state_ == state::draining) {
    auto front = arrivals_.front();
    arrivals_.pop_front();
    if (front.announced)
      dones_.push_back(front.id);
    if (front.holds_slab)
      release_slab(front);
  }
  bounce_begin_ = bounce_end_ = 0;
}

void channel::start_read(arrival& from) {
  start_read({from.rest.address, from.rest.key}, from.rest.length, target_.subspan(filled_), false);
}

/// Starts to read some of the `available` bytes at `from`: into `wanted` if that can be registered,
/// else into the bounce buffer. @returns false when the channel has failed.
bool channel::start_read(remote_address from, uint64_t available, byte_span wanted, bool attached) {
  read_progress progress;
  progress.from = from;
  progress.attached = attached;
  auto fits = std::min<uint64_t>(wanted.size(), available);
  if (attached || fits >= options_.direct_threshold) {
    auto region = loop_.adapter().register_memory(wanted.first(fits), access::read_sink);
    if (region) {
      memory_->direct = std::move(*region);
      progress.total = fits;
      progress.into = memory_->direct.get();
      progress.direct = true;
    } else {
      log_for("transport")->debug("reading through the bounce buffer: {}", region.error().text());
    }
  }
  if (!progress.direct) {
    if (!memory_->bounce) {
      auto region = loop_.adapter().allocate(bounce_bytes, access::read_sink);
      if (!region) {
        end_with(region.error());
        return false;
      }
      memory_->bounce = std::move(*region);
    }
    progress.total = std::min<uint64_t>(bounce_bytes, attached ? fits : available);
    progress.into = memory_->bounce.get();
  }
  reading_ = progress;
  continue_read();
  return true;
}

void channel::continue_read() {
  auto& limits = loop_.adapter().limits();
  auto in_flight = std::clamp<uint32_t>(limits.max_reads, 1, most_reads);
  auto chunk = std::min<uint64_t>(options_.chunk_bytes, limits.max_message);
  while (reading_->posted < reading_->total && reads_in_flight_ < in_flight) {
    auto length = std::min<uint64_t>(chunk, reading_->total - reading_->posted);
    work_request work;
    work.op = opcode::read;
    work.id = read_tag | length;
    work.local = {reading_->into, reading_->posted, length};
    work.remote = {reading_->from.address + reading_->posted, reading_->from.key};
    if (auto posted = pair_->post(work); !posted) {
      if (posted.error().code() != errc::no_resources)
        end_with(posted.error());
      return; // the next completion comes back here
    }
    reading_->posted += length;
    ++reads_in_flight_;
  }
}

void channel::on_read_done(size_t bytes) {
  --reads_in_flight_;
  reading_->finished += bytes;
  if (reading_->finished < reading_->total)
    return continue_read();
  auto finished = *std::exchange(reading_, std::nullopt);
  memory_->direct.reset();
  if (finished.attached) {
    if (state_ != state::draining)
      on_attached_read(finished);
  } else {
    auto& from = arrivals_.front();
    from.rest.address += finished.total;
    from.rest.length -= finished.total;
    if (state_ != state::draining) {
      if (from.rest.length == 0 &&
          from.announced) { // the peer may free it, though we have yet to hand it on
        dones_.push_back(from.id);
        from.announced = false;
      }
      if (finished.direct) {
        if (from.rest.length == 0)
          arrivals_.pop_front();
        delivering_ = true;
        take(finished.total);
        delivering_ = false;
      } else {
        bounce_begin_ = 0;
        bounce_end_ = finished.total;
      }
    }
  }
  if (state_ == state::draining)
    discard_arrivals();
  else if (state_ != state::ended)
    deliver();
  pump();
}

// -- attachments
// ----------------------------------------------------------------------------------------

std::optional<std::vector<uint64_t>> channel::attachments(size_t count) const {
  if (count > attachments_.size())
    return std::nullopt;
  std::vector<uint64_t> lengths;
  for (size_t i = 0; i < count; ++i)
    lengths.push_back(attachments_[i].from.length);
  return lengths;
}

void channel::fetch(std::vector<byte_span> places, std::shared_ptr<void> owner,
                    std::function<void()> done) {
  if (state_ == state::ended || state_ == state::draining || !memory_)
    return;
  fetch_awaited_ = false;
  memory_->fetched = std::move(owner);
  fetching_ = fetching{std::move(places), 0, 0, std::move(done)};
  go_on_fetching();
  resume();
}

void channel::skip(size_t count) {
  // Those that follow in the stream must be read all the same.
  std::vector<byte_span> places;
  auto bin = std::make_shared<std::vector<std::vector<char>>>();
  for (; count > 0 && places.empty(); --count) {
    auto next = attachments_.front();
    if (next.from.key == 0) {
      for (size_t i = 0; i < count; ++i)
        places.push_back(
            std::as_writable_bytes(std::span{bin->emplace_back(attachments_[i].from.length)}));
      break;
    }
    dones_.push_back(next.id);
    attachments_.pop_front();
  }
  fetch(std::move(places), std::move(bin), [] {});
}

/// Reads the next attachment, or ends when there is none. One that follows in the stream is read by
/// `deliver`.
void channel::go_on_fetching() {
  if (fetching_->next == fetching_->places.size()) {
    auto finished = std::move(*fetching_);
    fetching_.reset();
    memory_->fetched.reset();
    finished.done();
    return;
  }
  auto& from = attachments_.front().from;
  if (from.key == 0)
    return;
  auto place = fetching_->places[fetching_->next].subspan(fetching_->filled);
  start_read({from.address + fetching_->filled, from.key}, from.length - fetching_->filled, place,
             true);
}

void channel::on_attached_read(const read_progress& finished) {
  auto place = fetching_->places[fetching_->next].subspan(fetching_->filled);
  if (!finished.direct)
    std::memcpy(place.data(), memory_->bounce->data(), finished.total);
  fetching_->filled += finished.total;
  if (fetching_->filled == fetching_->places[fetching_->next].size())
    end_attachment();
  else
    go_on_fetching();
}

/// The next attachment is where it is wanted.
void channel::end_attachment() {
  if (attachments_.front().from.key != 0)
    dones_.push_back(attachments_.front().id);
  attachments_.pop_front();
  ++fetching_->next;
  fetching_->filled = 0;
  go_on_fetching();
}

} // namespace troupe::transport
