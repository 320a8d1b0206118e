#include "troupe/actors/completion_slot.hpp"

#include "wire.hpp"

#include <algorithm>
#include <array>

namespace troupe::cluster {

namespace {

using transport::byte_span;
using transport::byte_view;

constexpr uint32_t magic = 0x454e4f44; // "DONE"
constexpr uint16_t version = 1;
constexpr std::string_view name = "completion slot";

enum form : uint16_t { output_inline = 0, output_remote = 1 };

// Header, then job, task, attempt, exit code, signal, started, ended, length of the failure's text.
constexpr size_t fixed_bytes = wire::header_bytes + 8 + 4 + 4 + 4 + 4 + 8 + 8 + 4;
constexpr size_t lengths_bytes = 2 * sizeof(uint32_t);
static_assert(fixed_bytes + max_failure_bytes + lengths_bytes + max_inline_output ==
              completion_slot_bytes);
static_assert(2 * wire::region_bytes <= max_inline_output);

std::vector<std::byte> copy_of(byte_view bytes) {
  return {bytes.begin(), bytes.end()};
}

result<task_completion> violation(std::string_view why) {
  return fail(errc::protocol_violation, std::string{name} + ": " + std::string{why});
}

} // namespace

uint64_t task_completion::stdout_bytes() const noexcept {
  if (auto* held = std::get_if<inline_output>(&output))
    return held->standard_output.size();
  return std::get_if<remote_output>(&output)->standard_output.length;
}

uint64_t task_completion::stderr_bytes() const noexcept {
  if (auto* held = std::get_if<inline_output>(&output))
    return held->standard_error.size();
  return std::get_if<remote_output>(&output)->standard_error.length;
}

task_outcome task_completion::outcome() const {
  task_outcome out;
  out.exit_code = exit_code;
  out.signal = signal;
  out.failure = failure;
  out.stdout_bytes = stdout_bytes();
  out.stderr_bytes = stderr_bytes();
  out.elapsed = ended - started;
  return out;
}

result<size_t> encode_completion_slot(const task_completion& end, byte_span slot) {
  if (slot.size() < completion_slot_bytes)
    return fail(errc::invalid_argument, "a completion slot has 4096 bytes");
  auto* held = std::get_if<inline_output>(&end.output);
  if (held && held->standard_output.size() + held->standard_error.size() > max_inline_output)
    return fail(errc::invalid_argument, "a task's output of " + std::to_string(end.stdout_bytes()) +
                                            " and " + std::to_string(end.stderr_bytes()) +
                                            " bytes does not fit its completion slot");
  auto failure = std::string_view{end.failure}.substr(0, max_failure_bytes);
  wire::writer out{slot.first(completion_slot_bytes).subspan(wire::header_bytes)};
  out.number(end.job);
  out.number(end.task);
  out.number(end.attempt);
  out.number(static_cast<uint32_t>(end.exit_code));
  out.number(static_cast<uint32_t>(end.signal));
  out.number(static_cast<uint64_t>(end.started.count()));
  out.number(static_cast<uint64_t>(end.ended.count()));
  out.number(static_cast<uint32_t>(failure.size()));
  out.bytes(transport::bytes_of(failure));
  if (held) {
    out.number(static_cast<uint32_t>(held->standard_output.size()));
    out.number(static_cast<uint32_t>(held->standard_error.size()));
    out.bytes(held->standard_output);
    out.bytes(held->standard_error);
  } else {
    auto& where = std::get<remote_output>(end.output);
    out.region(where.standard_output);
    out.region(where.standard_error);
  }
  auto used = wire::header_bytes + out.used();
  wire::seal(slot, magic, version, held ? output_inline : output_remote, used);
  return used;
}

result<task_completion> decode_completion_slot(byte_view slot) {
  std::array<std::byte, completion_slot_bytes> copy{};
  auto bytes = slot.first(std::min(slot.size(), copy.size()));
  std::copy(bytes.begin(), bytes.end(), copy.begin());
  auto opened = wire::open(byte_span{copy}.first(bytes.size()), magic, version, name);
  if (!opened)
    return fail(opened.error());
  task_completion end;
  wire::reader in{opened->content};
  end.job = in.number<uint64_t>();
  end.task = in.number<uint32_t>();
  end.attempt = in.number<uint32_t>();
  end.exit_code = static_cast<int32_t>(in.number<uint32_t>());
  end.signal = static_cast<int32_t>(in.number<uint32_t>());
  end.started = std::chrono::nanoseconds{static_cast<int64_t>(in.number<uint64_t>())};
  end.ended = std::chrono::nanoseconds{static_cast<int64_t>(in.number<uint64_t>())};
  auto failure_bytes = in.number<uint32_t>();
  if (!in.ok() || failure_bytes > max_failure_bytes)
    return violation("it is cut off");
  end.failure = transport::text_of(in.bytes(failure_bytes));
  if (opened->form == output_inline) {
    auto first = in.number<uint32_t>();
    auto second = in.number<uint32_t>();
    inline_output held;
    held.standard_output = copy_of(in.bytes(first));
    held.standard_error = copy_of(in.bytes(second));
    end.output = std::move(held);
  } else if (opened->form == output_remote) {
    remote_output where;
    where.standard_output = in.region();
    where.standard_error = in.region();
    end.output = where;
  } else {
    return violation("its form is unknown");
  }
  if (!in.ok() || !in.at_end())
    return violation("its output is malformed");
  if (end.job == 0 || end.attempt == 0 || end.exit_code < -1 || end.exit_code > 255 ||
      end.signal < 0 || end.signal > 127 || end.started.count() < 0 || end.ended < end.started)
    return violation("a value is out of range");
  return end;
}

} // namespace troupe::cluster
