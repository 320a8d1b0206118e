// A queue pair of the soft device: work is carried out directly in the peer's memory where that can
// be reached, and by frames on a stream otherwise.
//
// Order: work starts in the order of posting and completes in it. A direct operation waits until
// no earlier one is still carried by frames, and a write or atomic that is carried waits until
// earlier reads were answered. A direct write is not held back by an earlier send that the peer has
// not taken from its ring yet.
#pragma once

#include "soft/completions.hpp"
#include "soft/context.hpp"
#include "soft/fixed_queue.hpp"
#include "soft/frame.hpp"
#include "soft/liveness.hpp"
#include "soft/ring_stream.hpp"
#include "soft/shared_link.hpp"
#include "soft/tcp_stream.hpp"

#include <array>

namespace troupe::transport::soft {

constexpr device_limits limits_of_soft{
    .max_message = uint64_t{1} << 30,
    .max_inline = 256,
    .max_depth = 1 << 16,
    .max_completions = 1 << 24,
    .max_reads = 64,
    .atomics = true,
    .native_immediate = true,
};

class pair final : public queue_pair {
public:
  pair(std::shared_ptr<context> device, const queue_pair_config& config);
  ~pair() override;

  status post_receive(uint64_t id, local_slice buffer) override;
  using queue_pair::post;
  status post(std::span<const work_request> work) override;
  void disconnect() override;
  endpoint peer() const override { return peer_; }
  std::string path() const override { return path_; }
  bool same_user() const override;

  // -- set-up -----------------------------------------------------------------------------------

  /// The set-up that works for this pair; cancelled when the pair is destroyed first.
  void set_connecting(watcher* setup) noexcept { connecting_ = setup; }

  /// This pair's bit of its queue's doorbell; nothing when none is free.
  std::optional<uint32_t> shared_bit();
  completions& queue() noexcept { return *completions_; }

  /// From now on data flows over `socket`.
  void establish(const endpoint& peer, descriptor socket, byte_view private_data);
  /// From now on data flows through shared memory.
  void establish(const endpoint& peer, shared_link::parts link, remote_doorbell bell,
                 byte_view private_data);
  void fail_connect(error reason, byte_view private_data);

  // -- for the completion queue -----------------------------------------------------------------

  /// Moves data both ways, as far as it goes in one turn.
  void progress();
  /// A completion of `op` was handed out.
  void taken(opcode op) noexcept;
  bool queued() const noexcept { return queued_; }
  void set_queued(bool queued) noexcept { queued_ = queued; }

private:
  enum class phase : uint8_t { connecting, established, failed };

  struct receive_entry {
    uint64_t id = 0;
    byte_span buffer;
  };

  struct work_entry {
    work_request request;
    std::byte* data = nullptr;
    std::vector<std::byte> copy; ///< of inlined data that could not leave at once
    size_t progress = 0;         ///< bytes transmitted, or copied directly
    size_t answered = 0;         ///< bytes of a read's answer that came
    uint32_t sequence = 0;       ///< of an operation carried by frames
    bool carried = false;        ///< by frames, from `progress` on
    bool acknowledged = false;
    bool done = false;
    errc status = errc::none;

    size_t length() const noexcept { return request.local.length; }
    bool is(opcode op) const noexcept { return request.op == op; }
    bool is_atomic() const noexcept { return is(opcode::fetch_add) || is(opcode::compare_swap); }
    bool is_write() const noexcept { return is(opcode::write) || is(opcode::write_notify); }
  };

  /// What the peer asked for and has not got yet.
  struct answer {
    remote_address place;
    uint64_t length = 0;
    uint64_t offset = 0;
    uint32_t sequence = 0;
    bool atomic = false;
    uint64_t old_value = 0;
  };

  struct outgoing_frame {
    enum class origin : uint8_t { none, work, answer };
    std::array<std::byte, sizeof(frame_header) + largest_extension> head;
    size_t head_size = 0;
    size_t head_sent = 0;
    const std::byte* body = nullptr; ///< null: registered memory at `place`
    remote_address place;
    size_t body_size = 0;
    size_t body_sent = 0;
    origin from = origin::none;
    frame_kind kind = frame_kind::acknowledge;
    bool active = false;
  };

  struct incoming_frame {
    std::array<std::byte, sizeof(frame_header) + largest_extension> head;
    size_t have = 0;
    frame_header header;
    uint32_t left = 0; ///< of the payload
  };

  /// Why transmitting stopped.
  enum class stop : uint8_t { idle, no_room, no_receive, budget };

  // -- pair.cpp
  status check(const work_request& request) const;
  void established(const endpoint& peer, byte_view private_data);
  void complete_front();
  void report(const work_entry& entry, errc status);
  void report_receive(const receive_entry& into, errc status, size_t length);
  void fail_pair(errc reason, const std::string& text, uint32_t failed_sequence = 0);
  void close_stream(errc reason, uint32_t failed_sequence);
  void flush_work();

  // -- pair_transmit.cpp
  bool transmit();
  stop push_frames(size_t& budget);
  bool push_answer(size_t& budget);
  stop push_work(size_t& budget, bool& moved);
  stop push_direct(work_entry& entry, size_t& budget, bool& moved);
  stop push_carried(work_entry& entry, size_t& budget, bool& moved);
  stop push_notify(work_entry& entry, bool& moved);
  void start_frame(outgoing_frame::origin from, frame_kind kind, uint8_t flags, byte_view extension,
                   byte_view body);
  bool write_frame();
  void frame_written();
  bool may_send();
  bool owes_word() const noexcept;

  // -- pair_receive.cpp
  bool receive_frames();
  bool take_head();
  size_t take_payload();
  void begin_part();
  void end_part();
  void begin_send();
  void begin_write();
  void begin_notify();
  void begin_read_request();
  void begin_atomic_request();
  void begin_response();
  void take_bye();
  bool take_acknowledgement(uint32_t acknowledged);
  work_entry* oldest_question();
  void violation(const char* what);
  void deny(uint32_t sequence);
  template <class Extension>
  Extension extension() const;

  std::shared_ptr<context> device_;
  completions* completions_;
  bool one_sided_;
  phase phase_ = phase::connecting;
  watcher* connecting_ = nullptr;
  bool queued_ = false;
  std::optional<uint32_t> bit_;
  endpoint peer_;
  std::string path_;

  // One of the two is set while established; stream_ points at what it stands for.
  std::unique_ptr<tcp_stream> tcp_;
  std::unique_ptr<liveness> liveness_; // with tcp_
  std::unique_ptr<ring_stream> ring_;
  std::unique_ptr<shared_link> link_; // with ring_
  stream* stream_ = nullptr;
  bool output_wanted_ = false;

  // -- the send queue: [0, next_) wait for an answer, next_ is being transmitted
  fixed_queue<work_entry> work_;
  size_t next_ = 0;
  size_t work_held_ = 0;        // completions not handed out yet
  uint32_t sequence_ = 0;       // of the last operation carried by frames
  uint32_t acknowledged_ = 0;   // by the peer, of ours
  size_t unanswered_ = 0;       // operations carried by frames
  size_t reads_unanswered_ = 0; // reads and atomics among them
  uint32_t sends_ = 0;          // receives of the peer that we have used
  uint32_t peer_receives_ = 0;  // that it has posted
  outgoing_frame out_;
  bool answer_next_ = true; // whose turn it is, when both sides want to send

  // -- the receive queue
  fixed_queue<receive_entry> receives_;
  size_t receives_held_ = 0;
  uint32_t posted_ = 0;     // receives, in all
  uint32_t advertised_ = 0; // of those, known to the peer
  uint32_t consumed_ = 0;
  std::optional<receive_entry> receiving_; // a message that has come in part
  size_t received_ = 0;

  // -- serving the peer
  incoming_frame in_;
  std::deque<answer> answers_;
  uint32_t served_sequence_ = 0;      // of the peer's last operation that came
  uint32_t served_acknowledged_ = 0;  // of its last write that was carried out
  uint32_t acknowledgement_sent_ = 0; // of those, known to the peer
  remote_address writing_;            // where the peer's write in progress goes on
  uint64_t write_left_ = 0;
  uint64_t atomic_answer_ = 0;
};

} // namespace troupe::transport::soft
