#include "doctor_probe.hpp"

#include "arguments.hpp"
#include "troupe/framework/config.hpp"
#include "troupe/framework/host.hpp"
#include "troupe/transport/shared_key.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::cli {

namespace {

constexpr size_t page_bytes = 4096;

system_limit limit_of(__rlimit_resource which) {
  rlimit value{};
  if (::getrlimit(which, &value) != 0 || value.rlim_cur == RLIM_INFINITY)
    return std::nullopt;
  return value.rlim_cur;
}

error try_shared_memory() {
  auto fd = ::memfd_create("troupe-doctor", MFD_CLOEXEC);
  if (fd < 0)
    return system_error("memfd_create", errno);
  error problem;
  if (::ftruncate(fd, page_bytes) != 0) {
    problem = system_error("ftruncate of a memory file", errno);
  } else {
    auto mapped = ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) {
      problem = system_error("mmap of a memory file", errno);
    } else {
      std::memset(mapped, 1, page_bytes);
      ::munmap(mapped, page_bytes);
    }
  }
  ::close(fd);
  return problem;
}

/// A child reads a word of ours: like any peer it is not our ancestor, which Yama would allow.
error try_peer_read() {
  uint64_t word = 4747;
  auto us = ::getpid();
  auto child = ::fork();
  if (child < 0)
    return system_error("fork", errno);
  if (child == 0) {
    uint64_t copy = 0;
    iovec into{&copy, sizeof copy};
    iovec from{&word, sizeof word};
    auto got = ::process_vm_readv(us, &into, 1, &from, 1, 0);
    ::_exit(got == sizeof copy && copy == word ? 0 : (got < 0 ? errno : EIO));
  }
  int how = 0;
  while (::waitpid(child, &how, 0) < 0)
    if (errno != EINTR)
      return system_error("waitpid", errno);
  if (!WIFEXITED(how))
    return {errc::permission_denied, "process_vm_readv: the system killed the process"};
  if (WEXITSTATUS(how) != 0)
    return system_error("process_vm_readv of another process", WEXITSTATUS(how));
  return {};
}

std::optional<int> ptrace_scope() {
  auto text = read_text_file("/proc/sys/kernel/yama/ptrace_scope");
  if (!text)
    return std::nullopt;
  auto value = parse_number(text->substr(0, text->find('\n')), "a number");
  return value ? std::optional<int>{static_cast<int>(*value)} : std::nullopt;
}

finding look_at_spool(const std::filesystem::path& directory) {
  struct statvfs room {};
  auto name = directory.string();
  if (::statvfs(name.c_str(), &room) != 0)
    return judge_spool(name, 0, system_error(name, errno));
  if (::access(name.c_str(), W_OK | X_OK) != 0)
    return judge_spool(name, 0, system_error("writing to " + name, errno));
  return judge_spool(name, static_cast<uint64_t>(room.f_bavail) * room.f_frsize, {});
}

device_trial try_device(const std::string& name, transport::device_scope scope) {
  device_trial trial;
  trial.asked = name;
  auto opened = transport::open_device(name, scope);
  if (!opened) {
    trial.problem = opened.error();
    return trial;
  }
  trial.name = opened->opened->name();
  trial.reason = opened->reason;
  using transport::access;
  auto rights = access::remote_read | access::remote_write;
  auto arena = opened->opened->allocate(trial_bytes, rights);
  if (!arena) {
    trial.problem = arena.error();
    return trial;
  }
  arena->reset();
  std::vector<std::byte> ours(trial_bytes);
  auto region = opened->opened->register_memory(ours, rights);
  if (!region)
    trial.problem = region.error();
  return trial;
}

} // namespace

report examine_machine(const connection_options& options, const std::string& device,
                       std::span<const std::string> environment) {
  report seen;
  auto peer_reads = judge_peer_reads(try_peer_read(), ptrace_scope()); // before there are threads
  auto file = find_config_file(options);
  auto key_file = find_key_file(options, environment);
  std::vector<setting> given;
  if (key_file && !key_file->empty())
    given.push_back({"cluster.key_file", key_file->string(), "the key file"});
  auto config = file ? load_node_config(file, given) : default_node_config();
  auto spool = config ? config->worker.spool : default_node_config().worker.spool;

  seen.devices = transport::list_devices();
  using transport::device_scope;
  auto has_key = key_file && !key_file->empty();
  seen.trial = try_device(device, has_key ? device_scope::network : device_scope::this_machine);
  auto has_adapter =
      std::any_of(seen.devices.begin(), seen.devices.end(),
                  [](const auto& candidate) { return candidate.name.starts_with("verbs"); });
  error key_problem;
  if (has_key) {
    if (auto key = transport::load_key_file(*key_file); !key)
      key_problem = key.error();
  }
  seen.findings = {judge_device(seen.trial),
                   judge_key(has_key ? key_file->string() : "", key_problem, has_adapter),
                   judge_memlock(limit_of(RLIMIT_MEMLOCK), has_adapter),
                   judge_open_files(limit_of(RLIMIT_NOFILE)),
                   judge_shared_memory(try_shared_memory()),
                   std::move(peer_reads),
                   look_at_spool(spool),
                   judge_config(file ? file->string() : "", config ? error{} : config.error())};
  return seen;
}

} // namespace troupe::cli
