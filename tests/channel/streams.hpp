// Channels under test: their bytes, who reads them, and loops that carry them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <troupe/transport/channel.hpp>
#include <troupe/transport/engine.hpp>
#include <vector>

namespace channel_test {

using namespace troupe;
using namespace troupe::transport;

/// The device under test and the address that reaches it; set once by main.
struct subject {
  std::string device;  ///< as `open_device` takes it
  std::string address; ///< numeric
  bool emulated() const { return device.starts_with("verbs:"); }
};
subject& under_test();

/// The bytes of every stream: `segment(begin, length)` are those from position `begin` on.
std::vector<char> segment(uint64_t begin, size_t length);

/// Whether `bytes` are those from position `begin` on.
bool right(byte_view bytes, uint64_t begin);

/// Reads a stream in pieces and checks every byte.
class checking_reader final : public channel::reader {
public:
  explicit checking_reader(size_t piece) : buffer_(piece) {}

  byte_span next_buffer() override;
  void on_filled() override;
  void on_end(const error& reason) override;

  /// Takes nothing more after `bytes`, until `channel::resume` and another limit.
  uint64_t limit = UINT64_MAX;

  uint64_t bytes = 0;  ///< read
  bool correct = true; ///< all of them
  bool ended = false;
  error reason;
  std::function<void()> on_piece; ///< called after each, when set

  /// Lengths of the next pieces; only while no buffer is out.
  void resize(size_t piece) { buffer_.resize(piece); }

private:
  std::vector<std::byte> buffer_;
};

/// An engine with a listener, whose connections are accepted as channels.
class node {
  std::unique_ptr<engine> loop_; // above the channels, which it must outlive
  std::unique_ptr<listener> listener_;

public:
  node();

  engine& loop() noexcept { return *loop_; }
  endpoint address() const;

  /// Connects to `where`. Fails the test when that cannot begin.
  std::unique_ptr<channel> connect(const endpoint& where,
                                   std::chrono::milliseconds timeout = std::chrono::minutes{1});

  /// Connections that came and stand, oldest first.
  std::vector<std::unique_ptr<channel>> accepted;
  unsigned ready = 0; ///< of ours that stand
  error failure;      ///< of the last one that did not come to stand

  channel_options options;

private:
  void accept(std::unique_ptr<connection_request> request);
};

/// Turns all of `nodes` until `reached` says so, a minute at most.
/// @returns whether it did.
bool turn_until(std::initializer_list<node*> nodes, const std::function<bool()>& reached);

/// Turns all of `nodes` for `time` whatever happens.
void turn_for(std::initializer_list<node*> nodes, std::chrono::milliseconds time);

} // namespace channel_test
