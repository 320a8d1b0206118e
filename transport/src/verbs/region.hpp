// Registered memory.
#pragma once

#include "adapter.hpp"

namespace troupe::transport::verbs {

class region final : public memory_region {
public:
  /// Maps zeroed memory of `size` bytes and registers it.
  static result<std::unique_ptr<region>> allocate(std::shared_ptr<adapter> on, size_t size,
                                                  access rights);
  /// Registers memory of the caller.
  static result<std::unique_ptr<region>> adopt(std::shared_ptr<adapter> on, byte_span memory,
                                               access rights);

  std::byte* data() const noexcept override { return memory_.data(); }
  size_t size() const noexcept override { return memory_.size(); }
  access rights() const noexcept override { return rights_; }
  const void* home() const noexcept override { return adapter_.get(); }
  remote_region remote() const noexcept override;

  /// The key by which the adapter knows it locally.
  uint32_t local_key() const noexcept { return registration_->lkey; }

private:
  struct mapping {
    size_t size;
    void operator()(void* memory) const noexcept;
  };
  using mapping_handle = std::unique_ptr<void, mapping>;

  region(std::shared_ptr<adapter> on, mapping_handle mapped, byte_span memory, access rights);
  status enrol();

  std::shared_ptr<adapter> adapter_;
  mapping_handle mapped_; ///< empty for the caller's memory
  byte_span memory_;
  access rights_;
  memory_handle registration_;
};

} // namespace troupe::transport::verbs
