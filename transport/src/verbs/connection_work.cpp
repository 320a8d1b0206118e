// The data path of a connection.
#include "connection.hpp"
#include "message_header.hpp"
#include "troupe/transport/log.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cstring>
#include <limits>
#include <system_error>

namespace troupe::transport::verbs {

namespace {

using namespace std::chrono_literals;

// Adapters flush in micro- to milliseconds. Work that was posted while the adapter failed on its
// own may never be flushed by a software adapter: after this it is reported as such by us.
constexpr auto flush_patience = 250ms;

bool is_atomic(opcode op) {
  return op == opcode::fetch_add || op == opcode::compare_swap;
}

bool is_known(opcode op) {
  return op == opcode::send || op == opcode::write || op == opcode::write_notify ||
         op == opcode::read || is_atomic(op);
}

/// What a failed receive means. The adapters agree on little here: soft-RoCE reports the requests
/// that it refuses, and messages that are too long, as errors of the receive that was at the head.
errc status_of_receive(ibv_wc_status status) {
  switch (status) {
  case IBV_WC_SUCCESS:
    return errc::none;
  case IBV_WC_LOC_LEN_ERR:
  case IBV_WC_LOC_QP_OP_ERR:
  case IBV_WC_REM_INV_REQ_ERR:
    return errc::local_length;
  case IBV_WC_WR_FLUSH_ERR:
  case IBV_WC_REM_ACCESS_ERR:
    return errc::flushed;
  default:
    return errc::system;
  }
}

errc status_of_send(ibv_wc_status status, opcode op, bool iwarp) {
  switch (status) {
  case IBV_WC_SUCCESS:
    return errc::none;
  case IBV_WC_REM_ACCESS_ERR:
    return errc::remote_access;
  case IBV_WC_WR_FLUSH_ERR:
    return errc::flushed;
  case IBV_WC_LOC_LEN_ERR:
    return errc::local_length;
  case IBV_WC_REM_INV_REQ_ERR:
  case IBV_WC_REM_OP_ERR:
    // To a send, the answer of a receiver whose buffer is too short; to one-sided work, of one that
    // does not support it.
    return op == opcode::send ? errc::local_length : errc::remote_access;
  case IBV_WC_RETRY_EXC_ERR:
  case IBV_WC_RNR_RETRY_EXC_ERR:
  case IBV_WC_RESP_TIMEOUT_ERR:
    return errc::disconnected;
  case IBV_WC_GENERAL_ERR:
  case IBV_WC_LOC_QP_OP_ERR:
    return iwarp ? errc::disconnected : errc::system; // iWARP: its stream broke
  default:
    return errc::system;
  }
}

ibv_wr_opcode adapter_opcode(opcode op) {
  switch (op) {
  case opcode::write:
    return IBV_WR_RDMA_WRITE;
  case opcode::write_notify:
    return IBV_WR_RDMA_WRITE_WITH_IMM;
  case opcode::read:
    return IBV_WR_RDMA_READ;
  case opcode::fetch_add:
    return IBV_WR_ATOMIC_FETCH_AND_ADD;
  case opcode::compare_swap:
    return IBV_WR_ATOMIC_CMP_AND_SWP;
  default:
    return IBV_WR_SEND;
  }
}

ibv_sge entry_of(const memory_region& memory, size_t offset, size_t length) {
  return {reinterpret_cast<uintptr_t>(memory.data()) + offset, static_cast<uint32_t>(length),
          static_cast<const region&>(memory).local_key()};
}

} // namespace

// -- checks
// -----------------------------------------------------------------------------------------------

status connection::check(const local_slice& slice) const {
  if (slice.length == 0)
    return {};
  if (slice.region != nullptr && slice.region->home() != adapter_.get())
    return fail(errc::invalid_argument, "the memory of a slice is not registered with " +
                                            adapter_->name() + ", or with another opening of it");
  if (slice.region == nullptr || slice.offset > slice.region->size() ||
      slice.length > slice.region->size() - slice.offset)
    return fail(errc::invalid_argument,
                "a slice of " + std::to_string(slice.length) + " bytes at " +
                    std::to_string(slice.offset) + " is outside its region of " +
                    std::to_string(slice.region == nullptr ? 0 : slice.region->size()) + " bytes");
  if (slice.length > std::numeric_limits<uint32_t>::max())
    return fail(errc::invalid_argument, "a slice of " + std::to_string(slice.length) +
                                            " bytes is longer than an adapter can name");
  return {};
}

status connection::check(const work_request& work) const {
  const auto& limits = adapter_->limits();
  if (!is_known(work.op))
    return fail(errc::invalid_argument, "only sends and one-sided work can be posted");
  if (auto inside = check(work.local); !inside)
    return inside;
  if (work.local.length > limits.max_message)
    return fail(errc::invalid_argument,
                "a message of " + std::to_string(work.local.length) + " bytes is above the " +
                    std::to_string(limits.max_message) + " bytes of " + adapter_->name());
  if (work.inlined &&
      (work.op == opcode::read || is_atomic(work.op) || work.local.length > limits.max_inline))
    return fail(errc::invalid_argument, "only sends and writes of up to " +
                                            std::to_string(limits.max_inline) +
                                            " bytes can be inlined on " + adapter_->name());
  if (work.op == opcode::read && work.local.length > 0 &&
      !allows(work.local.region->rights(), access::read_sink))
    return fail(errc::invalid_argument,
                "a read goes into memory that was registered with access::read_sink");
  if (is_atomic(work.op)) {
    if (!limits.atomics)
      return fail(errc::unsupported, adapter_->name() + " has no atomics");
    if (work.local.length != 8 || work.remote.address % 8 != 0)
      return fail(errc::invalid_argument, "an atomic has 8 bytes at an address aligned to 8");
  }
  return {};
}

uint32_t connection::slots_of(const work_request& work) const {
  // An empty write needs no write: its announcement is all.
  bool split = headers_ && work.op == opcode::write_notify && work.local.length > 0;
  return split ? 2 : 1;
}

// -- posting
// ----------------------------------------------------------------------------------------------

byte_span connection::header_at(size_t index) const {
  return headers_->bytes().subspan(index * message_header::bytes, message_header::bytes);
}

status connection::post_receive(uint64_t id, local_slice buffer) {
  if (auto inside = check(buffer); !inside)
    return inside;
  if (receives_.room() == 0)
    return fail(errc::no_resources, "the receive queue is full");
  auto slot = receives_.push({id, opcode::receive}).slot;
  if (failed_) {
    ++kept_receives_;
    completions_.settle_later(owner_);
    return {};
  }
  std::array<ibv_sge, 2> parts;
  int count = 0;
  if (headers_)
    parts[static_cast<size_t>(count++)] =
        entry_of(*headers_, (sends_.slots() + slot) * message_header::bytes, message_header::bytes);
  if (buffer.length > 0)
    parts[static_cast<size_t>(count++)] = entry_of(*buffer.region, buffer.offset, buffer.length);
  ibv_recv_wr request = {};
  request.wr_id = work_tag{owner_, true, slot}.pack();
  request.sg_list = parts.data();
  request.num_sge = count;
  ibv_recv_wr* refused = nullptr;
  if (int rc = ibv_post_recv(id_->qp, &request, &refused); rc != 0) {
    log_for("verbs")->warn("{}: ibv_post_recv: {}", adapter_->name(),
                           std::generic_category().message(std::abs(rc)));
    ++kept_receives_;
    fail_work(true);
  }
  return {};
}

ibv_send_wr& connection::append_slot(const work_request& work, bool first_half) {
  auto place = sends_.push({work.id, work.op, work.signaled, first_half});
  auto& request = batch_.emplace_back();
  request = {};
  request.wr_id = work_tag{owner_, false, place.slot}.pack();
  request.send_flags = place.signal ? IBV_SEND_SIGNALED : 0;
  return request;
}

void connection::add_header(ibv_send_wr& to, uint32_t slot, const work_request& work) {
  message_header header;
  if (work.op == opcode::write_notify) {
    header.what = message_header::kind::notify;
    header.immediate = work.immediate;
    header.length = work.local.length;
  }
  auto encoded = header.encode();
  std::memcpy(header_at(slot).data(), encoded.data(), encoded.size());
  batch_data_.push_back(entry_of(*headers_, slot * message_header::bytes, message_header::bytes));
  ++to.num_sge;
}

void connection::add_data(ibv_send_wr& to, const work_request& work) {
  if (work.local.length > 0) {
    batch_data_.push_back(entry_of(*work.local.region, work.local.offset, work.local.length));
    ++to.num_sge;
  } else if (work.op == opcode::read && headers_) {
    // siw reads as much as the entry that was there before says, if it is given none.
    batch_data_.push_back(entry_of(*headers_, 0, 0));
    ++to.num_sge;
  }
}

void connection::inline_short(ibv_send_wr& request) const {
  uint64_t bytes = 0;
  for (auto part = batch_data_.end() - request.num_sge; part != batch_data_.end(); ++part)
    bytes += part->length;
  if (bytes > 0 && bytes <= adapter_->raw_inline())
    request.send_flags |= IBV_SEND_INLINE;
}

void connection::append(const work_request& work) {
  if (slots_of(work) == 2) {
    auto& write = append_slot(work, true);
    write.opcode = IBV_WR_RDMA_WRITE;
    write.wr.rdma = {work.remote.address, work.remote.key};
    add_data(write, work);
    inline_short(write);
  }
  auto& request = append_slot(work, false);
  auto slot = work_tag::unpack(request.wr_id).slot;
  request.opcode = adapter_opcode(work.op);
  if (headers_ && work.op == opcode::write_notify) {
    request.opcode = IBV_WR_SEND;
    add_header(request, slot, work);
    inline_short(request);
    return;
  }
  if (headers_ && work.op == opcode::send)
    add_header(request, slot, work);
  add_data(request, work);
  if (work.op != opcode::read && !is_atomic(work.op))
    inline_short(request);
  if (is_atomic(work.op)) {
    request.wr.atomic = {work.remote.address, work.operand, work.swap, work.remote.key};
  } else {
    request.wr.rdma = {work.remote.address, work.remote.key};
    request.imm_data = htonl(work.immediate);
  }
}

status connection::post(std::span<const work_request> work) {
  if (work.empty())
    return {};
  if (phase_ == phase::connecting || (phase_ == phase::accepting && !heard_))
    return fail(errc::invalid_argument, "the connection is not established yet");
  for (const auto& request : work)
    if (auto sound = check(request); !sound)
      return sound;
  if (work.size() > sends_.room())
    return fail(errc::no_resources, "the send queue has room for " + std::to_string(sends_.room()) +
                                        " of " + std::to_string(work.size()) + " requests");
  batch_.clear();
  batch_data_.clear();
  for (const auto& request : work)
    append(request);
  if (failed_) {
    kept_sends_ += static_cast<uint32_t>(batch_.size());
    completions_.settle_later(owner_);
    return {};
  }
  auto data = batch_data_.data();
  for (size_t index = 0; index < batch_.size(); ++index) {
    batch_[index].sg_list = data;
    data += batch_[index].num_sge;
    batch_[index].next = index + 1 < batch_.size() ? &batch_[index + 1] : nullptr;
  }
  ibv_send_wr* refused = nullptr;
  if (int rc = ibv_post_send(id_->qp, batch_.data(), &refused); rc != 0) {
    // Part of the batch may be on its way: all of it counts as posted, and the rest is flushed.
    log_for("verbs")->debug("{}: ibv_post_send: {}", adapter_->name(),
                            std::generic_category().message(std::abs(rc)));
    if (refused != nullptr)
      kept_sends_ += static_cast<uint32_t>(batch_.data() + batch_.size() - refused);
    fail_work(true);
  }
  return {};
}

// -- completions
// ------------------------------------------------------------------------------------------

void connection::report_receive(const ibv_wc& entry, completion& out) {
  if (!headers_) {
    out.length = entry.byte_len;
    out.has_immediate = (entry.wc_flags & IBV_WC_WITH_IMM) != 0;
    if (out.has_immediate)
      out.immediate = ntohl(entry.imm_data);
    return;
  }
  auto slot = work_tag::unpack(entry.wr_id).slot;
  std::optional<message_header> header;
  if (entry.byte_len >= message_header::bytes)
    header =
        message_header::decode(header_at(sends_.slots() + slot).first<message_header::bytes>());
  if (!header) {
    give_up("a message came without a proper header");
    out.status = errc::system;
    return;
  }
  out.has_immediate = header->what == message_header::kind::notify;
  out.immediate = header->immediate;
  out.length = out.has_immediate ? header->length : entry.byte_len - message_header::bytes;
}

void connection::finish(work_tag tag, const ibv_wc& entry, completion_sink& sink) {
  auto report = [&](const ended_work& ended) {
    completion done;
    done.id = ended.id;
    done.pair = this;
    done.op = ended.op;
    done.status = ended.status;
    if (tag.receive && done.status == errc::none)
      report_receive(entry, done);
    sink.put(done);
  };
  if (tag.receive) {
    heard_ = heard_ || entry.status == IBV_WC_SUCCESS;
    receives_.end(tag.slot, status_of_receive(entry.status), report);
  } else if (auto work = sends_.find(tag.slot)) {
    auto status = status_of_send(entry.status, work->op, adapter_->is_iwarp());
    sends_.end(tag.slot, status, report);
  }
  if (entry.status == IBV_WC_WR_FLUSH_ERR)
    give_up({}); // the consequence of something else, which is told elsewhere
  else if (entry.status != IBV_WC_SUCCESS)
    give_up(std::string{"work failed: "} + ibv_wc_status_str(entry.status));
}

void connection::fail_work(bool moved) {
  failed_ = true;
  if (moved && !flush_deadline_) {
    flush_deadline_ = clock::now() + flush_patience;
    ibv_qp_attr attributes = {};
    attributes.qp_state = IBV_QPS_ERR;
    if (int rc = ibv_modify_qp(id_->qp, &attributes, IBV_QP_STATE); rc != 0)
      log_for("verbs")->debug("{}: queue pair not moved to the error state: {}", adapter_->name(),
                              std::generic_category().message(std::abs(rc)));
    events_->watch(*this);
  }
  if (sends_.outstanding_slots() + receives_.outstanding_slots() > 0)
    completions_.settle_later(owner_);
}

bool connection::settle(clock::time_point now, completion_sink& sink) {
  bool adapter_done =
      sends_.outstanding_slots() <= kept_sends_ && receives_.outstanding_slots() <= kept_receives_;
  if (!adapter_done && !(flush_deadline_ && now >= *flush_deadline_))
    return false;
  auto report = [&](const ended_work& ended) {
    completion done;
    done.id = ended.id;
    done.pair = this;
    done.op = ended.op;
    done.status = ended.status;
    sink.put(done);
  };
  sends_.flush(report);
  receives_.flush(report);
  kept_sends_ = 0;
  kept_receives_ = 0;
  return true;
}

} // namespace troupe::transport::verbs
