// The connecting side of connection set-up.
#pragma once

#include "soft/context.hpp"
#include "soft/handshake.hpp"
#include "soft/local_socket.hpp"

namespace troupe::transport::soft {

class pair;

class connecting final : public watcher {
public:
  /// Starts to connect `made` to `remote`. How it ends, `made` is told.
  static void begin(std::shared_ptr<context> device, pair& made, const endpoint& remote,
                    bool may_share, byte_view private_data, std::chrono::milliseconds timeout);

  connecting(std::shared_ptr<context> device, pair& made, const endpoint& remote, bool may_share,
             byte_view private_data, steady_clock::time_point deadline);
  ~connecting() override;

  void on_ready(int descriptor, uint32_t events) override;
  std::optional<steady_clock::time_point> deadline() const override { return deadline_; }
  void on_deadline() override;

private:
  enum class step : uint8_t { connect, greeting, local_answer, tcp_answer };

  bool start();
  void connected();
  void greeted();
  bool claim_memory();
  void request_tcp();
  void local_answer();
  void tcp_answer();
  void rejected(const answer_message& no);

  // Reads more of `message`. @returns whether it is complete; ends this when the peer is gone.
  bool gather(byte_span message);

  // These end the set-up and destroy this object.
  void failed(error reason, byte_view private_data = {});
  void finished();

  std::string what() const { return "connecting to " + to_string(remote_); }

  std::shared_ptr<context> device_;
  pair& pair_;
  endpoint remote_;
  bool may_share_;
  opening start_;
  steady_clock::time_point deadline_;
  step step_ = step::connect;
  descriptor socket_;
  descriptor local_;
  std::shared_ptr<link_memory> memory_;
  size_t have_ = 0;
  greeting greeting_;
  answer_message answer_;
};

} // namespace troupe::transport::soft
