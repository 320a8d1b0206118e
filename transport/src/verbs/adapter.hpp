// An open adapter: what every object of a verbs device shares.
#pragma once

#include "handles.hpp"
#include "socket_address.hpp"
#include "troupe/transport/device.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::transport::verbs {

/// Held by shared pointer by everything that was made from it, so that memory and pairs may outlive
/// the device object. Immutable after opening: any thread.
class adapter {
public:
  /// @returns `errc::no_such_device` when there is none of that name or it cannot be used.
  static result<std::shared_ptr<adapter>> open(const std::string& name);

  const std::string& name() const noexcept { return name_; }
  const device_limits& limits() const noexcept { return limits_; }
  ibv_context* context() const noexcept { return anchor_->verbs; }
  ibv_pd* domain() const noexcept { return domain_.get(); }

  /// A domain in which no memory is registered.
  ibv_pd* empty_domain() const noexcept { return empty_domain_.get(); }

  /// No immediate data and no retries when the receiver is not ready.
  bool is_iwarp() const noexcept {
    return context()->device->transport_type == IBV_TRANSPORT_IWARP;
  }

  /// Bytes that an emulated notification adds before every message.
  size_t header_bytes() const noexcept { return header_bytes_; }

  /// Most bytes that the adapter copies into a work request, headers included.
  uint32_t raw_inline() const noexcept { return raw_inline_; }
  uint32_t raw_completions() const noexcept { return raw_completions_; }

  /// Its own addresses, without port; never empty.
  const std::vector<socket_address>& addresses() const noexcept { return addresses_; }

  /// Its address of `family`, or its first one.
  const socket_address& address_for(int family) const noexcept;

  /// `address` itself, or our own one where it is a loopback address, which no adapter serves.
  socket_address without_loopback(const socket_address& address) const;

private:
  adapter() = default;
  status load_limits();

  std::string name_;
  std::vector<socket_address> addresses_;
  device_limits limits_;
  size_t header_bytes_ = 0;
  uint32_t raw_inline_ = 0;
  uint32_t raw_completions_ = 0;
  event_channel_handle anchor_channel_;
  id_handle anchor_; ///< keeps librdmacm's context of this adapter open
  domain_handle domain_;
  domain_handle empty_domain_;
};

} // namespace troupe::transport::verbs
