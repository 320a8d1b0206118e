#include "dialer.hpp"

#include <algorithm>
#include <utility>

namespace troupe::transport {

dialer::dialer(engine& loop, const endpoint& remote, const connection_terms& ours,
               const queue_pair_config& queues, std::chrono::milliseconds timeout,
               connection_handler& user, pair_handler on_pair)
    : loop_(loop), remote_(remote), queues_(queues), deadline_(engine::clock::now() + timeout),
      user_(user), on_pair_(std::move(on_pair)), introduction_(loop.admission().key(), ours) {}

dialer::~dialer() {
  let_go();
}

std::chrono::milliseconds dialer::time_left() const {
  auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline_ - engine::clock::now()).count();
  return std::chrono::milliseconds{std::max<int64_t>(left, 1)};
}

status dialer::start() {
  return introduction_.asks_first() ? ask(introduction_.first()) : connect(introduction_.first());
}

/// Says `what` on a pair that the peer can do nothing with.
status dialer::ask(const packed_hello& what) {
  auto queues = loop_.reserve_queues(1, 1);
  if (!queues)
    return fail(queues.error());
  queues->one_sided = false;
  auto pair = loop_.connect(remote_, *queues, what, time_left(), *this);
  asking_queues_ = *queues;
  if (!pair) {
    loop_.retire(nullptr, *queues, nullptr);
    return fail(pair.error());
  }
  asking_ = std::move(*pair);
  return {};
}

status dialer::connect(const packed_hello& what) {
  auto pair = loop_.connect(remote_, queues_, what, time_left(), user_);
  if (!pair)
    return fail(pair.error());
  return on_pair_(std::move(*pair));
}

void dialer::let_go() {
  if (asking_)
    loop_.retire(std::move(asking_), asking_queues_, nullptr);
}

void dialer::fail_with(const error& reason) {
  auto& user = user_;
  auto why = reason;
  user.on_closed(why, {}); // may destroy this
}

void dialer::on_established(byte_view) {
  let_go();
  if (parting_)
    return fail_with(parting_);
  fail_with(about_peer({errc::protocol_violation, "the peer accepted without proof of the key"}));
}

void dialer::on_closed(const error& reason, byte_view private_data) {
  let_go();
  if (parting_)
    return fail_with(parting_);
  if (private_data.empty())
    return fail_with(reason);
  auto proof = introduction_.answer(private_data);
  if (proof) {
    if (auto connecting = connect(*proof); !connecting)
      fail_with(connecting.error());
    return;
  }
  auto why = about_peer(proof.error());
  if (!introduction_.should_say_farewell())
    return fail_with(why);
  parting_ = why;
  if (auto said = ask(introduction_.farewell()); !said)
    fail_with(why);
}

result<connection_terms> dialer::conclude(byte_view said, const queue_pair& pair) const {
  auto theirs = introduction_.conclude(said);
  if (!theirs)
    return fail(about_peer(theirs.error()));
  if (!introduction_.asks_first() && !pair.same_user())
    return fail(about_peer(
        {errc::unauthenticated,
         "without a key, only a process of this user on this machine is trusted, and the peer is "
         "none; " +
             std::string{key_remedy}}));
  return theirs;
}

error dialer::explain(const error& reason, byte_view said) const {
  auto why = introduction::explain(reason, said);
  return why.text() == reason.text() ? reason : about_peer(why);
}

error dialer::about_peer(const error& reason) const {
  return {reason.code(), "connect to " + to_string(remote_) + ": " + reason.text()};
}

} // namespace troupe::transport
