// A reliable connection: an rdma_cm id with its queue pair.
#pragma once

#include "completions.hpp"
#include "connector.hpp"
#include "region.hpp"
#include "work_ring.hpp"

namespace troupe::transport::verbs {

class connection final : public queue_pair, public event_target {
public:
  /// Makes the queue pair of `id`, which must be bound to the adapter.
  static result<std::unique_ptr<connection>> create(std::shared_ptr<connector> events, id_handle id,
                                                    const queue_pair_config& config);
  ~connection() override;

  // -- queue_pair
  status post_receive(uint64_t id, local_slice buffer) override;
  status post(std::span<const work_request> work) override;
  void disconnect() override;
  endpoint peer() const override;
  std::string path() const override { return adapter_->name(); }
  bool same_user() const override { return false; } // no adapter knows of users

  // -- set-up, see connection.cpp
  status start_connect(const socket_address& remote, byte_view private_data,
                       std::chrono::milliseconds timeout);

  /// Accepts at the next turn, so that receives which are posted until then are there before the
  /// peer can send: iWARP does not wait for them.
  void start_accept(byte_view private_data, const cm_event& request);
  std::optional<connection_event> on_event(cm_event& event) override;

  /// When `expire` wants to be called.
  std::optional<clock::time_point> wake_at() const;
  std::optional<connection_event> expire(clock::time_point now);

  // -- work, see connection_work.cpp
  /// Reports what an entry of the completion queue means.
  void finish(work_tag tag, const ibv_wc& entry, completion_sink& sink);

  /// After a failure, reports as flushed what the adapter will not report (any more).
  /// @returns whether nothing is left to report.
  bool settle(clock::time_point now, completion_sink& sink);

private:
  enum class phase { connecting, accepting, established, closing, closed };

  connection(std::shared_ptr<connector> events, id_handle id, completions& queue,
             uint32_t send_depth, uint32_t receive_depth);
  status make_queues(ibv_pd* domain);
  rdma_conn_param parameters(byte_view private_data) const;
  int milliseconds_left() const;

  std::optional<connection_event> answer();
  std::optional<connection_event> failed(error reason);
  std::optional<connection_event> closed(const std::string& why);
  void tune();

  /// Ends a connection on which work failed, so that both sides hear of it.
  void give_up(std::string why);
  void start_close();

  /// From here on nothing is given to the adapter; `moved` says that its queue pair is to be put
  /// into the error state now.
  void fail_work(bool moved);

  status check(const work_request& work) const;
  status check(const local_slice& slice) const;
  uint32_t slots_of(const work_request& work) const;
  void append(const work_request& work);
  ibv_send_wr& append_slot(const work_request& work, bool first_half);
  void add_header(ibv_send_wr& to, uint32_t slot, const work_request& work);
  void add_data(ibv_send_wr& to, const work_request& work);

  /// Lets the adapter take the data of `request`, the last one, along with it if that is short
  /// enough, whether the user asked for it or not: that saves an access to memory. And it keeps
  /// clear of an error of the kernel's siw, whose transmitting thread now and then takes over a
  /// short message that a system call began, reads the data as if it were that process, and breaks
  /// the connection (EFAULT, after every hundredth segment; siw_try_1seg in siw_qp_tx.c).
  void inline_short(ibv_send_wr& request) const;
  byte_span header_at(size_t index) const;
  void report_receive(const ibv_wc& entry, completion& out);

  std::shared_ptr<adapter> adapter_;
  std::shared_ptr<connector> events_;
  completions& completions_;
  uint32_t owner_ = 0; ///< in `completions_`, 0 while not entered
  id_handle id_;
  std::unique_ptr<region> headers_; ///< of sends, then of receives; where a header is needed
  id_queue_pair_handle queues_;

  phase phase_ = phase::connecting;
  bool awaits_outcome_ = false; ///< of rdma_connect
  bool answer_due_ = false;     ///< accepting: rdma_accept is still to come
  bool heard_ = false;          ///< a message has come, perhaps before the event that we stand
  uint8_t most_reads_here_ = 0; ///< accepting: what the peer asked for
  uint8_t most_reads_there_ = 0;
  socket_address remote_;
  std::vector<std::byte> offered_;            ///< private data for rdma_connect
  std::optional<clock::time_point> deadline_; ///< of connecting or closing
  std::string breach_;                        ///< why we gave up

  work_ring sends_;
  work_ring receives_;
  bool failed_ = false;
  uint32_t kept_sends_ = 0;    ///< slots that were not given to the adapter since
  uint32_t kept_receives_ = 0; ///< likewise
  std::optional<clock::time_point> flush_deadline_;
  bool flush_woken_ = false;

  std::vector<ibv_send_wr> batch_; ///< reused by each `post`
  std::vector<ibv_sge> batch_data_;
};

} // namespace troupe::transport::verbs
