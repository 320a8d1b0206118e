// A reliable, ordered stream of bytes over one queue pair: eager frames for what is short,
// rendezvous by RDMA Read for what is long, credits so that no frame ever meets an empty receive
// queue.
//
// Frames (little-endian): kind u8, 0 u8, credits u16, length u32, then `length` bytes. `credits`
// gives back receive slabs that the sender of the frame has emptied and posted again.
//   data        bytes of the stream
//   rendezvous  address u64, length u64, key u32, id u32, then the first bytes of the segment; the
//   receiver
//               reads the rest by RDMA Read and answers with `done`
//   done        id u32: the sender of the segment may free it
//   credit      nothing: only gives credits back
//   attached    for each of some attachments: address u64, length u64, key u32, id u32. They belong
//   to the segment
//               whose bytes come next. One that could not be registered has key 0: its bytes follow
//               the segment's. The others are read by RDMA Read straight to where the reader wants
//               them, and answered with `done`.
// Before all that, both sides have introduced themselves, see hello.hpp.
// The connecting side speaks first, with an empty credit frame; the accepting side waits for it.
// The last credit is spent only on a frame that gives at least one credit back. So the two sides
// can never both be out of credits, and a stream that is full in both directions still drains.
#pragma once

#include "troupe/transport/engine.hpp"
#include "troupe/transport/introduction.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace troupe::transport {

class dialer;

struct channel_options {
  size_t slab_bytes = 8 * 1024 + 64; ///< of one receive slab, and so of the longest frame
  uint16_t slabs = 32;               ///< receive slabs, and send slabs, of a connection
  size_t rendezvous_threshold =
      32 * 1024;                       ///< a segment of at least this many bytes goes by RDMA Read
  size_t direct_threshold = 64 * 1024; ///< shorter parts of a segment are read into a bounce buffer
  size_t chunk_bytes = 1024 * 1024;    ///< of one RDMA Read
};

/// Memory that travels beside the stream, from where it lies. `owner` keeps it alive and unchanged
/// until the peer has it.
struct attachment {
  byte_view bytes;
  std::shared_ptr<const void> owner;
};

/// Event-loop thread only. Memory of an idle connection: twice `slabs` times `slab_bytes`.
class channel final : public connection_handler {
public:
  /// Who reads the stream. Must outlive the channel, or the channel be closed first.
  class reader {
  public:
    virtual ~reader() = default;

    /// Offers bytes of the stream where they lie, when no buffer is being filled. @returns how many
    /// from the beginning it has used; they are not offered again. When it uses none, `next_buffer`
    /// is asked.
    virtual size_t on_bytes(byte_view) { return 0; }

    /// Where the next bytes of the stream go; filled completely before `on_filled`. Must stay valid
    /// until then. Empty: not now; `channel::resume` asks again.
    virtual byte_span next_buffer() = 0;

    /// The buffer given last is full.
    virtual void on_filled() = 0;

    /// The stream is over: `errc::disconnected` when the peer closed it, else what broke it. Called
    /// at most once, and not after `close`.
    virtual void on_end(const error& reason) = 0;
  };

  /// Tells the connecting side how set-up ended (an error that is `none` means well). Called once.
  using ready_handler = std::function<void(const error&)>;

  /// Starts to connect.
  static result<std::unique_ptr<channel>> connect(engine& loop, const endpoint& remote,
                                                  const channel_options& options,
                                                  std::chrono::milliseconds timeout,
                                                  ready_handler on_ready);

  /// Accepts a request, for a connection of kind `stream`, of somebody whom the engine's gate lets
  /// in. When that fails the request is rejected.
  static result<std::unique_ptr<channel>> accept(engine& loop, connection_request& request,
                                                 const gate::admission& whom,
                                                 const channel_options& options,
                                                 ready_handler on_ready);

  ~channel() override;

  /// Sets who reads. Without a reader, arrived bytes wait (and credits are not given back).
  void read_with(reader& who);

  /// Asks the reader for a buffer again.
  void resume();

  /// Sends `segment` after everything sent before. Takes its bytes and leaves an empty vector with,
  /// often, warm capacity. Never blocks: what the peer has no room for waits here.
  void send(std::vector<char>& segment) { send(segment, {}); }

  /// The same for a segment with attachments. They may be as long as memory holds.
  void send(std::vector<char>& segment, std::vector<attachment> attached);

  /// For the reader of a segment with attachments, from `on_bytes` or `on_filled` on: the lengths
  /// of the next `count` attachments, in the order in which they were attached. @returns nothing
  /// when the peer has not announced so many.
  std::optional<std::vector<uint64_t>> attachments(size_t count) const;

  /// Stops reading the stream until `fetch`, which may be called from `on_bytes` or `on_filled`, or
  /// later.
  void await_fetch() { fetch_awaited_ = true; }

  /// Reads the next attachments into `places`, whose sizes are theirs and which `owner` keeps
  /// alive. The stream goes on when all is there, after `done` was called. When the connection ends
  /// earlier `done` is forgotten.
  void fetch(std::vector<byte_span> places, std::shared_ptr<void> owner,
             std::function<void()> done);

  /// The same without reading them: nobody wants them.
  void skip(size_t count);

  /// Sends what is waiting, then disconnects. The reader is forgotten. `on_closed` is called once
  /// when nothing is left to do; destroying the channel earlier drops what is waiting.
  void close(std::function<void()> on_closed);

  /// Bytes that wait for the peer, including those offered for rendezvous.
  size_t backlog_bytes() const noexcept { return backlog_; }

  endpoint peer() const { return pair_ ? pair_->peer() : endpoint{}; }
  std::string path() const { return pair_ ? pair_->path() : std::string{}; }

  // -- connection_handler
  // -----------------------------------------------------------------------------
  void on_completion(const completion& done) override;
  void on_established(byte_view private_data) override;
  void on_closed(const error& reason, byte_view private_data) override;

private:
  enum class state : uint8_t { connecting, open, draining, ended };
  enum class frame : uint8_t { data = 1, rendezvous, done, credit, attached };

  /// A frame of the stream that has arrived, in order: unread bytes in a receive slab and, for an
  /// announced segment, what is still in the peer's memory.
  struct arrival {
    uint32_t slab = 0;
    size_t begin = 0; // of the unread bytes in the slab
    size_t end = 0;
    bool holds_slab = true;
    bool announced = false;
    remote_region rest;
    uint32_t id = 0;
  };

  struct outgoing {
    std::vector<char> bytes;
    std::vector<attachment> attached; // not announced yet
    bool eager = false; // it could not be registered: frames carry it whatever its size
  };

  /// Memory of ours that the peer reads: a segment or an attachment. The region goes before the
  /// bytes.
  struct offer {
    std::vector<char> bytes;
    attachment attached;
    std::unique_ptr<memory_region> region;

    size_t size() const noexcept { return bytes.size() + attached.bytes.size(); }
  };

  /// An attachment that the peer has announced. With key 0 its bytes follow the segment.
  struct announced {
    remote_region from;
    uint32_t id = 0;
  };

  /// Attachments that are being read, in order.
  struct fetching {
    std::vector<byte_span> places;
    size_t next = 0;   // of places
    size_t filled = 0; // bytes of places[next]
    std::function<void()> done;
  };

  /// What the queue pair may touch; destroyed after it.
  struct memory {
    std::unique_ptr<memory_region> receive;
    std::unique_ptr<memory_region> send;
    std::unique_ptr<memory_region> bounce;
    std::unique_ptr<memory_region>
        direct;                    // the part of the reader's buffer that is being read into
    std::shared_ptr<void> fetched; // owns the places of the attachments that are being read
    std::unordered_map<uint32_t, offer> offers;
  };

  /// An RDMA Read of `total` bytes, in chunks.
  struct read_progress {
    remote_address from;
    const memory_region* into = nullptr;
    size_t total = 0;
    size_t posted = 0;
    size_t finished = 0;
    bool direct = false;   // into where they are wanted, else into the bounce buffer
    bool attached = false; // of an attachment, else of the front arrival
  };

  channel(engine& loop, const channel_options& options, ready_handler on_ready);

  status prepare();
  status post_slab(uint32_t index);
  status post_slabs();
  connection_terms our_terms() const;
  void accept_terms(const connection_terms& theirs);

  // sending
  void pump();
  bool post_frame(frame kind, size_t body_bytes);
  byte_span frame_body() const;
  void post_done();
  bool offer_front();
  bool announce_attached();
  bool goes_by_rendezvous(const outgoing& what) const noexcept;
  size_t pack_waiting();
  void recycle(std::vector<char> bytes);

  // receiving
  void on_frame(uint32_t slab, size_t length);
  void deliver();
  void discard_arrivals();
  void take(size_t bytes);
  void release_slab(arrival& from);
  void start_read(arrival& from);
  bool start_read(remote_address from, uint64_t available, byte_span wanted, bool attached);
  void continue_read();
  void on_read_done(size_t bytes);
  void on_attached_read(const read_progress& finished);
  void go_on_fetching();
  void end_attachment();

  void tell_ready(const error& how);
  void end_with(const error& reason);
  void finish_if_drained();
  void retire();

  engine& loop_;
  channel_options options_;
  ready_handler on_ready_;
  std::function<void()> on_drained_;
  reader* reader_ = nullptr;
  state state_ = state::connecting;

  std::shared_ptr<memory> memory_ = std::make_shared<memory>();
  queue_pair_config queues_;
  std::unique_ptr<dialer> dialer_; // connecting side, until the connection stands
  std::unique_ptr<queue_pair> pair_;

  // sending
  std::deque<outgoing> waiting_;
  size_t front_sent_ = 0;        // bytes of waiting_.front() that are sent
  std::vector<outgoing> copied_; // attachments of waiting_.front() that could not be registered
  size_t backlog_ = 0;
  std::vector<uint32_t> free_send_slabs_;
  std::vector<std::vector<char>> spare_;
  size_t spare_bytes_ = 0;
  std::deque<uint32_t> dones_; // ids that we still have to report
  uint32_t last_offer_ = 0;
  uint32_t credits_ = 0;    // frames that the peer has room for
  uint32_t peer_slabs_ = 0; // how many that can be at most
  size_t frame_bytes_ = 0;  // longest frame that both sides can hold
  uint32_t sends_in_flight_ = 0;
  bool connects_ = false; // this is the connecting side
  bool may_speak_ =
      false; // on iWARP the accepting side must not send before it has heard (RFC 5044, 7.1)

  // receiving
  std::vector<std::pair<uint32_t, size_t>>
      early_; // slabs and lengths of frames before the terms are known
  std::deque<arrival> arrivals_;
  std::deque<announced> attachments_; // that have not been read
  bool fetch_awaited_ = false;
  std::optional<fetching> fetching_;
  uint32_t owed_ = 0; // slabs that we emptied and have not told the peer about
  byte_span target_;  // the reader's buffer
  size_t filled_ = 0; // bytes of it that are there
  std::optional<read_progress> reading_;
  size_t bounce_begin_ = 0; // unread bytes in the bounce buffer
  size_t bounce_end_ = 0;
  uint32_t reads_in_flight_ = 0;
  bool delivering_ = false;
};

} // namespace troupe::transport
