// Owners of libibverbs and librdmacm objects, one per kind. A raw pointer never leaves its owner's
// scope; a release that fails is logged.
#pragma once

#include <cerrno>
#include <infiniband/verbs.h>
#include <memory>
#include <rdma/rdma_cma.h>
#include <unistd.h>
#include <utility>

namespace troupe::transport::verbs {

/// Logs that `what` failed with `errno_value`.
void log_release_failure(const char* what, int errno_value) noexcept;

/// Calls `Release`, which returns 0, an errno value (libibverbs) or -1 with errno set (librdmacm).
template <class T, int (*Release)(T*)>
struct releaser {
  void operator()(T* object) const noexcept {
    if (int rc = Release(object); rc != 0)
      log_release_failure(__PRETTY_FUNCTION__, rc > 0 ? rc : errno);
  }
};

using domain_handle = std::unique_ptr<ibv_pd, releaser<ibv_pd, &ibv_dealloc_pd>>;
using memory_handle = std::unique_ptr<ibv_mr, releaser<ibv_mr, &ibv_dereg_mr>>;
using completion_channel_handle =
    std::unique_ptr<ibv_comp_channel, releaser<ibv_comp_channel, &ibv_destroy_comp_channel>>;
using completion_queue_handle = std::unique_ptr<ibv_cq, releaser<ibv_cq, &ibv_destroy_cq>>;
using bare_queue_pair_handle = std::unique_ptr<ibv_qp, releaser<ibv_qp, &ibv_destroy_qp>>;
using device_context_handle =
    std::unique_ptr<ibv_context, releaser<ibv_context, &ibv_close_device>>;
using id_handle = std::unique_ptr<rdma_cm_id, releaser<rdma_cm_id, &rdma_destroy_id>>;

struct event_channel_releaser {
  void operator()(rdma_event_channel* channel) const noexcept {
    rdma_destroy_event_channel(channel);
  }
};
using event_channel_handle = std::unique_ptr<rdma_event_channel, event_channel_releaser>;

struct device_list_releaser {
  void operator()(ibv_device** list) const noexcept { ibv_free_device_list(list); }
};
using device_list_handle = std::unique_ptr<ibv_device*, device_list_releaser>;

/// The queue pair that `rdma_create_qp` hung onto an id. Stands below the id it belongs to.
struct id_queue_pair_releaser {
  void operator()(rdma_cm_id* id) const noexcept { rdma_destroy_qp(id); }
};
using id_queue_pair_handle = std::unique_ptr<rdma_cm_id, id_queue_pair_releaser>;

/// A file descriptor.
class descriptor {
public:
  descriptor() = default;
  explicit descriptor(int fd) : fd_(fd) {}
  descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~descriptor() {
    if (fd_ >= 0)
      close(fd_);
  }
  int get() const noexcept { return fd_; }

private:
  int fd_ = -1;
};

/// Makes reads of `fd` return at once. @returns false with errno set.
bool set_non_blocking(int fd) noexcept;

} // namespace troupe::transport::verbs
