#include "region.hpp"

#include "inspect.hpp"

#include <sys/mman.h>
#include <system_error>

namespace troupe::transport::verbs {

namespace {

int verbs_rights(access rights, const adapter& on) {
  int flags = IBV_ACCESS_LOCAL_WRITE; // which remote writes and atomics require
  if (allows(rights, access::remote_read))
    flags |= IBV_ACCESS_REMOTE_READ;
  if (allows(rights, access::remote_write) || (allows(rights, access::read_sink) && on.is_iwarp()))
    flags |= IBV_ACCESS_REMOTE_WRITE;
  if (allows(rights, access::remote_atomic) && on.limits().atomics)
    flags |= IBV_ACCESS_REMOTE_ATOMIC;
  return flags;
}

} // namespace

void region::mapping::operator()(void* memory) const noexcept {
  if (munmap(memory, size) != 0)
    log_release_failure("munmap", errno);
}

region::region(std::shared_ptr<adapter> on, mapping_handle mapped, byte_span memory, access rights)
    : adapter_(std::move(on)), mapped_(std::move(mapped)), memory_(memory), rights_(rights) {}

status region::enrol() {
  registration_.reset(ibv_reg_mr(adapter_->domain(), memory_.data(), memory_.size(),
                                 verbs_rights(rights_, *adapter_)));
  if (registration_)
    return {};
  auto cause = errno;
  auto what = "ibv_reg_mr of " + std::to_string(memory_.size()) + " bytes on " + adapter_->name();
  if (cause != ENOMEM)
    return fail(system_error(what, cause));
  return fail(errc::limit_too_low, what + ": " + std::generic_category().message(cause) +
                                       " (RLIMIT_MEMLOCK is " + memlock_limit() + "; " +
                                       memlock_remedy + ")");
}

result<std::unique_ptr<region>> region::allocate(std::shared_ptr<adapter> on, size_t size,
                                                 access rights) {
  if (size == 0)
    return fail(errc::invalid_argument, "allocate of 0 bytes on " + on->name());
  // Registering faults every page in; a separate populate would only walk them twice.
  auto memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return fail(system_error("mmap of " + std::to_string(size) + " bytes", errno));
  mapping_handle mapped{memory, mapping{size}};
  // Copy-on-write after a fork could leave us with other pages than the adapter has.
  if (madvise(memory, size, MADV_DONTFORK) != 0)
    return fail(system_error("madvise of registered memory", errno));
  std::unique_ptr<region> made{new region{
      std::move(on), std::move(mapped), byte_span{static_cast<std::byte*>(memory), size}, rights}};
  if (auto done = made->enrol(); !done)
    return fail(done.error());
  return made;
}

result<std::unique_ptr<region>> region::adopt(std::shared_ptr<adapter> on, byte_span memory,
                                              access rights) {
  if (memory.empty())
    return fail(errc::invalid_argument, "registering 0 bytes on " + on->name());
  std::unique_ptr<region> made{
      new region{std::move(on), mapping_handle{nullptr, mapping{0}}, memory, rights}};
  if (auto done = made->enrol(); !done)
    return fail(done.error());
  return made;
}

remote_region region::remote() const noexcept {
  return {reinterpret_cast<uintptr_t>(memory_.data()), memory_.size(), registration_->rkey};
}

} // namespace troupe::transport::verbs
