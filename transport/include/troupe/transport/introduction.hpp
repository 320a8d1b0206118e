// Who may connect: the two sides of the exchange that hello.hpp describes, as plain state. Knows of
// no socket and no adapter.
#pragma once

#include "troupe/transport/hello.hpp"

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <variant>

namespace troupe::transport {

class connection_request;

/// What one side says about the connection it wants or grants.
struct connection_terms {
  connection_kind kind = connection_kind::stream;
  uint16_t receive_slabs = 0; ///< stream, see `hello`
  uint32_t slab_bytes = 0;    ///< stream
  uint64_t token = 0;         ///< memory, of the connecting side

  bool operator==(const connection_terms&) const = default;
};

/// The connecting side.
class introduction {
public:
  /// `key` may be null: then only a peer without a key agrees.
  introduction(shared_key_ptr key, const connection_terms& ours);

  /// Whether `first` only asks for a challenge: then it must be rejected, and `answer` is what to
  /// connect with.
  bool asks_first() const noexcept { return key_ != nullptr; }

  const packed_hello& first() const noexcept { return first_; }

  /// Takes what the listener said when it rejected `first`.
  /// @returns what to connect with now; `errc::unauthenticated` when the listener did not prove
  /// that it has the key (`should_say_farewell` then), or says that it lacks it; else what
  /// `explain` gives.
  result<packed_hello> answer(byte_view said);

  /// Whether the listener is to be told, by one more connect with `farewell`, that its key differs.
  bool should_say_farewell() const noexcept { return keys_differ_; }
  packed_hello farewell() const;

  /// Takes what the listener said when it accepted.
  /// @returns its terms, `errc::unauthenticated` when its proof is wrong, `errc::version_mismatch`
  /// or `errc::protocol_violation`.
  result<connection_terms> conclude(byte_view said) const;

  /// Why there will be no connection: what the listener `said` in its rejection, else `reason`.
  static error explain(const error& reason, byte_view said);

private:
  shared_key_ptr key_;
  connection_terms ours_;
  packed_hello first_;
  packed_hello challenge_{};
  packed_hello proof_{};
  bool keys_differ_ = false;
};

/// The accepting side, for all who come. One thread.
class gate {
public:
  using clock = std::chrono::steady_clock;

  /// How long a challenge can be answered. A peer on a busy machine needs its time.
  static constexpr std::chrono::seconds patience{30};

  /// How many challenges wait at once; the oldest goes for another one.
  static constexpr size_t most_challenges = 4096;

  /// Without a key, processes of this user on this machine are let in, and nobody else.
  explicit gate(shared_key_ptr key) : key_(std::move(key)) {}

  const shared_key_ptr& key() const noexcept { return key_; }

  /// Somebody who may connect.
  struct admission {
    connection_terms theirs;
    std::array<packed_hello, 3> said{}; ///< ask, challenge and proof, if there is a key
  };

  /// What to reject with. `why` is none where that is the way things go.
  struct rejection {
    packed_hello reply;
    error why;
  };

  /// Decides about a request to connect. `same_user` tells whether the system vouches that the peer
  /// is of this user and on this machine; it is asked only where that counts.
  std::variant<admission, rejection> judge(byte_view said, const std::function<bool()>& same_user,
                                           clock::time_point now);

  /// `judge` on a real request, which is rejected, with a log line, if that is the judgement.
  std::optional<admission> admit(connection_request& request);

  /// What to accept with.
  packed_hello welcome(const admission& whom, const connection_terms& ours) const;

  /// What to reject with when something else stands in the way.
  static packed_hello refuse(refusal why);

private:
  struct waiting {
    packed_hello ask;
    packed_hello challenge;
  };

  rejection give_challenge(byte_view ask, clock::time_point now);
  std::variant<admission, rejection> judge_proof(const hello& theirs, byte_view said);
  void forget_old(clock::time_point now);

  shared_key_ptr key_;
  std::map<uint64_t, waiting> challenges_;
  std::deque<std::pair<clock::time_point, uint64_t>> given_; // in order of time
};

} // namespace troupe::transport
