#include "troupe/actors/task_slot.hpp"

#include "wire.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace troupe::cluster {

namespace {

using transport::byte_span;
using transport::byte_view;
using transport::remote_region;

constexpr uint32_t magic = 0x4b534154; // "TASK"
constexpr uint16_t version = 1;
constexpr std::string_view name = "task slot";

enum form : uint16_t { body_inline = 0, body_in_block = 1 };

// Header, then job, task, attempt, cpus, (unused), memory.
constexpr size_t fixed_bytes = wire::header_bytes + 8 + 4 + 4 + 4 + 4 + 8;
static_assert(fixed_bytes + max_inline_task_body == task_slot_bytes);

status violation(std::string_view why) {
  return fail(errc::protocol_violation, std::string{name} + ": " + std::string{why});
}

size_t body_bytes(const task_order& order) {
  auto sum = 3 * sizeof(uint32_t) + order.cwd.size();
  for (auto* list : {&order.argv, &order.env})
    for (auto& text : *list)
      sum += sizeof(uint32_t) + text.size();
  return sum;
}

void write_text(wire::writer& out, const std::string& text) {
  out.number(static_cast<uint32_t>(text.size()));
  out.bytes(transport::bytes_of(text));
}

std::string read_text(wire::reader& in) {
  auto length = in.number<uint32_t>();
  return std::string{transport::text_of(in.bytes(length))};
}

std::vector<std::string> read_list(wire::reader& in) {
  std::vector<std::string> list;
  // Ends early where the bytes do: the count alone costs nothing.
  for (auto count = in.number<uint32_t>(); count != 0 && in.ok(); --count)
    list.push_back(read_text(in));
  return list;
}

status read_body(byte_view body, task_order& order) {
  wire::reader in{body};
  auto argv = read_list(in);
  auto env = read_list(in);
  auto cwd = read_text(in);
  if (!in.ok() || !in.at_end())
    return violation("its command is malformed");
  if (auto sound = check_command(argv, env, cwd); !sound)
    return violation(sound.error().text());
  order.argv = std::move(argv);
  order.env = std::move(env);
  order.cwd = std::move(cwd);
  return {};
}

} // namespace

std::vector<std::byte> encode_task_body(const task_order& order) {
  std::vector<std::byte> body(body_bytes(order));
  wire::writer out{body};
  for (auto* list : {&order.argv, &order.env}) {
    out.number(static_cast<uint32_t>(list->size()));
    for (auto& text : *list)
      write_text(out, text);
  }
  write_text(out, order.cwd);
  return body;
}

result<size_t> encode_task_slot(const task_order& order, byte_view body, const remote_region& where,
                                byte_span slot) {
  if (slot.size() < task_slot_bytes)
    return fail(errc::invalid_argument, "a task slot has 4096 bytes");
  bool fits = body.size() <= max_inline_task_body;
  if (!fits && (where.length != body.size() || body.size() > max_task_body))
    return fail(errc::invalid_argument,
                "a task's command of " + std::to_string(body.size()) +
                    " bytes does not fit its slot and is not in memory that the worker can read");
  wire::writer out{slot.first(task_slot_bytes).subspan(wire::header_bytes)};
  out.number(order.job);
  out.number(order.task);
  out.number(order.attempt);
  out.number(order.cpus);
  out.number(uint32_t{0});
  out.number(order.memory);
  if (fits) {
    out.bytes(body);
  } else {
    out.region(where);
    out.number(crc32c(body));
  }
  auto used = wire::header_bytes + out.used();
  wire::seal(slot, magic, version, fits ? body_inline : body_in_block, used);
  return used;
}

result<received_task> decode_task_slot(byte_view slot) {
  std::array<std::byte, task_slot_bytes> copy{};
  auto bytes = slot.first(std::min(slot.size(), copy.size()));
  std::copy(bytes.begin(), bytes.end(), copy.begin());
  auto opened = wire::open(byte_span{copy}.first(bytes.size()), magic, version, name);
  if (!opened)
    return fail(opened.error());
  received_task task;
  wire::reader in{opened->content};
  task.order.job = in.number<uint64_t>();
  task.order.task = in.number<uint32_t>();
  task.order.attempt = in.number<uint32_t>();
  task.order.cpus = in.number<uint32_t>();
  in.number<uint32_t>();
  task.order.memory = in.number<uint64_t>();
  if (!in.ok() || task.order.job == 0 || task.order.attempt == 0 || task.order.cpus == 0)
    return fail(violation("job, attempt and CPUs cannot be 0").error());
  if (opened->form == body_inline) {
    auto body = opened->content.subspan(fixed_bytes - wire::header_bytes);
    if (auto read = read_body(body, task.order); !read)
      return fail(read.error());
    return task;
  }
  task.body = task_block{in.region(), in.number<uint32_t>()};
  auto length = task.body->where.length;
  if (opened->form != body_in_block || !in.ok() || !in.at_end() || length <= max_inline_task_body ||
      length > max_task_body)
    return fail(violation("its reference to a command is malformed").error());
  return task;
}

status decode_task_body(byte_view block, const task_block& expected, task_order& order) {
  if (block.size() != expected.where.length || crc32c(block) != expected.checksum)
    return violation("the command that was read for it is not the one that was meant");
  return read_body(block, order);
}

} // namespace troupe::cluster
