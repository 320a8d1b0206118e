#include "soft/soft_device.hpp"

#include "soft/connecting.hpp"
#include "soft/context.hpp"
#include "soft/listening.hpp"
#include "soft/pair.hpp"
#include "soft/request.hpp"
#include "troupe/transport/log.hpp"

namespace troupe::transport {

namespace soft {

namespace {

class soft_device final : public device {
public:
  soft_device(soft_mode mode, std::shared_ptr<context> shared)
      : mode_(mode), name_(mode == soft_mode::automatic ? "soft" : "soft:tcp"),
        context_(std::move(shared)) {}

  ~soft_device() override { context_->close(); }

  const std::string& name() const noexcept override { return name_; }
  const device_limits& limits() const noexcept override { return limits_of_soft; }

  result<std::unique_ptr<memory_region>> allocate(size_t size, access rights) override {
    return context_->regions().allocate(size, rights);
  }

  result<std::unique_ptr<memory_region>> register_memory(byte_span memory, access rights) override {
    return context_->regions().adopt(memory, rights);
  }

  result<std::unique_ptr<completion_queue>> create_completion_queue(uint32_t depth) override {
    if (depth == 0 || depth > limits_of_soft.max_completions)
      return fail(errc::invalid_argument,
                  "a completion queue of " + std::to_string(depth) + " entries: 1 to " +
                      std::to_string(limits_of_soft.max_completions) + " are possible");
    return completions::make();
  }

  result<std::unique_ptr<listener>> listen(const endpoint& local) override {
    if (mode_ == soft_mode::automatic && !door_) {
      auto opened = door::open(context_);
      if (opened)
        door_ = std::move(*opened);
      else
        log_for("soft")->warn("no shared memory, only TCP: {}", opened.error().text());
    }
    return soft_listener::open(context_, door_, local);
  }

  result<std::unique_ptr<queue_pair>> connect(const endpoint& remote,
                                              const queue_pair_config& config,
                                              byte_view private_data,
                                              std::chrono::milliseconds timeout) override {
    if (auto checked = check_config(config, private_data); !checked)
      return fail(checked.error());
    auto made = std::make_unique<pair>(context_, config);
    auto may_share = mode_ == soft_mode::automatic && config.one_sided;
    connecting::begin(context_, *made, remote, may_share, private_data, timeout);
    return made;
  }

  int event_fd() const noexcept override { return context_->fd(); }
  std::optional<connection_event> next_event() override { return context_->next_event(); }

private:
  soft_mode mode_;
  std::string name_;
  std::shared_ptr<context> context_;
  std::shared_ptr<door> door_; // made by the first listener
};

} // namespace

} // namespace soft

result<std::unique_ptr<device>> open_soft_device(soft_mode mode) {
  auto regions = soft::region_table::make();
  if (!regions)
    return fail(regions.error());
  auto shared = soft::context::make(std::move(*regions));
  if (!shared)
    return fail(shared.error());
  return std::make_unique<soft::soft_device>(mode, std::move(*shared));
}

} // namespace troupe::transport
