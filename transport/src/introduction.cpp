#include "troupe/transport/introduction.hpp"

#include "troupe/transport/device.hpp"
#include "troupe/transport/log.hpp"
#include "wire.hpp"

#include <cstring>

namespace troupe::transport {

namespace {

hello hello_of(hello_step step, const connection_terms& terms) {
  hello h;
  h.step = step;
  h.kind = terms.kind;
  h.receive_slabs = terms.receive_slabs;
  h.slab_bytes = terms.slab_bytes;
  h.token = terms.token;
  return h;
}

connection_terms terms_of(const hello& h) {
  return {h.kind, h.receive_slabs, h.slab_bytes, h.token};
}

packed_hello pack(byte_view said) {
  packed_hello bytes{};
  std::memcpy(bytes.data(), said.data(), bytes.size());
  return bytes;
}

/// `h` with the tag of `key` over `before` and itself.
template <class... Before>
packed_hello pack_signed(const shared_key& key, hello h, const Before&... before) {
  auto bytes = encode(h);
  h.tag = key.sign({byte_view{before}..., untagged(bytes)});
  return encode(h);
}

error error_of(refusal reason) {
  switch (reason) {
  case refusal::needs_key:
    return {errc::unauthenticated, "the peer asks for a key and this process has none: name the "
                                   "peer's key file with --key-file, [cluster] key_file or "
                                   "TROUPE_KEY_FILE"};
  case refusal::has_no_key:
    return {errc::unauthenticated, "this process has a key and the peer has none: start the peer "
                                   "with the same key file"};
  case refusal::wrong_key:
    return {errc::unauthenticated, "the peer has another key: use the same key file on both"};
  case refusal::other_user:
    return {errc::permission_denied, "neither side has a key, and then the peer serves only "
                                     "processes of its own user on its own machine; " +
                                         std::string{key_remedy}};
  case refusal::stale:
    return {errc::timeout, "the peer does not wait for this proof of the key any more: try again"};
  case refusal::not_expected:
    return {errc::refused, "the peer does not expect this memory link (any more)"};
  case refusal::no_room:
    return {errc::refused, "the peer has no room for another connection; its log says more"};
  case refusal::bad_terms:
    return {errc::protocol_violation, "the peer refused our receive buffers"};
  case refusal::malformed:
    return {errc::protocol_violation, "the peer did not understand what we said"};
  }
  return {errc::refused, "the peer refused for an unknown reason"};
}

} // namespace

// -- connecting -----------------------------------------------------------------------------------

introduction::introduction(shared_key_ptr key, const connection_terms& ours)
    : key_(std::move(key)), ours_(ours) {
  hello h = hello_of(key_ ? hello_step::ask : hello_step::open, ours_);
  if (key_)
    fill_random(h.nonce);
  first_ = encode(h);
}

result<packed_hello> introduction::answer(byte_view said) {
  auto theirs = decode_hello(said);
  if (!theirs)
    return fail(theirs.error());
  if (theirs->step == hello_step::refusal)
    return fail(error_of(theirs->reason));
  if (theirs->step != hello_step::challenge || !key_)
    return fail(errc::protocol_violation, "the peer answered out of turn");
  challenge_ = pack(said);
  if (!key_->matches(theirs->tag, {first_, untagged(challenge_)})) {
    keys_differ_ = true;
    return fail(error_of(refusal::wrong_key));
  }
  auto h = hello_of(hello_step::proof, ours_);
  h.challenge = load<uint64_t>(theirs->nonce, 0);
  proof_ = pack_signed(*key_, h, first_, challenge_);
  return proof_;
}

packed_hello introduction::farewell() const {
  return gate::refuse(refusal::wrong_key);
}

result<connection_terms> introduction::conclude(byte_view said) const {
  auto theirs = decode_hello(said);
  if (!theirs)
    return fail(theirs.error());
  if (theirs->step != hello_step::welcome || theirs->kind != ours_.kind)
    return fail(errc::protocol_violation, "the peer accepted with words that make no sense");
  if (key_ && !key_->matches(theirs->tag, {first_, challenge_, proof_, untagged(pack(said))}))
    return fail(errc::unauthenticated,
                "what accepted the connection did not prove that it has the key");
  return terms_of(*theirs);
}

error introduction::explain(const error& reason, byte_view said) {
  if (said.empty())
    return reason;
  auto theirs = decode_hello(said);
  if (!theirs)
    return theirs.error().code() == errc::version_mismatch ? theirs.error() : reason;
  return theirs->step == hello_step::refusal ? error_of(theirs->reason) : reason;
}

// -- accepting ------------------------------------------------------------------------------------

packed_hello gate::refuse(refusal why) {
  hello h;
  h.step = hello_step::refusal;
  h.reason = why;
  return encode(h);
}

std::variant<gate::admission, gate::rejection>
gate::judge(byte_view said, const std::function<bool()>& same_user, clock::time_point now) {
  auto theirs = decode_hello(said);
  if (!theirs)
    return rejection{refuse(refusal::malformed), theirs.error()};
  switch (theirs->step) {
  case hello_step::open:
    if (key_)
      return rejection{refuse(refusal::needs_key), {errc::unauthenticated, "it has no key"}};
    if (!same_user())
      return rejection{refuse(refusal::other_user),
                       {errc::permission_denied,
                        "it is no process of this user on this machine, and there is no key; " +
                            std::string{key_remedy}}};
    return admission{terms_of(*theirs)};
  case hello_step::ask:
  case hello_step::proof:
    if (!key_)
      return rejection{refuse(refusal::has_no_key),
                       {errc::unauthenticated,
                        "it has a key and this node has none: start this node with its key file"}};
    forget_old(now);
    if (theirs->step == hello_step::ask)
      return give_challenge(said, now);
    return judge_proof(*theirs, said);
  case hello_step::refusal:
    if (theirs->reason == refusal::wrong_key)
      return rejection{refuse(refusal::malformed),
                       {errc::unauthenticated,
                        "its key is another one than this node's: use the same key file on both"}};
    break;
  case hello_step::challenge:
  case hello_step::welcome:
    break;
  }
  return rejection{refuse(refusal::malformed), {errc::protocol_violation, "it spoke out of turn"}};
}

gate::rejection gate::give_challenge(byte_view ask, clock::time_point now) {
  hello h;
  h.step = hello_step::challenge;
  uint64_t id = 0;
  do {
    fill_random(h.nonce);
    id = load<uint64_t>(h.nonce, 0);
  } while (challenges_.contains(id));
  waiting entry{pack(ask), {}};
  entry.challenge = pack_signed(*key_, h, entry.ask);
  if (challenges_.size() >= most_challenges) {
    challenges_.erase(given_.front().second);
    given_.pop_front();
  }
  given_.emplace_back(now, id);
  return {challenges_.emplace(id, entry).first->second.challenge, {}};
}

std::variant<gate::admission, gate::rejection> gate::judge_proof(const hello& theirs,
                                                                 byte_view said) {
  auto found = challenges_.extract(theirs.challenge); // good for one attempt
  if (!found)
    return rejection{refuse(refusal::stale),
                     {errc::unauthenticated,
                      "it answered a challenge that was never given, was answered before or is "
                      "older than " +
                          std::to_string(patience.count()) + " seconds"}};
  std::erase_if(given_, [&](const auto& entry) { return entry.second == theirs.challenge; });
  admission whom{terms_of(theirs), {found.mapped().ask, found.mapped().challenge, pack(said)}};
  auto& [ask, challenge, proof] = whom.said;
  if (!key_->matches(theirs.tag, {ask, challenge, untagged(proof)}))
    return rejection{refuse(refusal::wrong_key),
                     {errc::unauthenticated, "it did not prove that it has the key"}};
  return whom;
}

void gate::forget_old(clock::time_point now) {
  while (!given_.empty() && given_.front().first + patience < now) {
    challenges_.erase(given_.front().second);
    given_.pop_front();
  }
}

packed_hello gate::welcome(const admission& whom, const connection_terms& ours) const {
  auto h = hello_of(hello_step::welcome, ours);
  h.token = 0;
  if (!key_)
    return encode(h);
  auto& [ask, challenge, proof] = whom.said;
  return pack_signed(*key_, h, ask, challenge, proof);
}

std::optional<gate::admission> gate::admit(connection_request& request) {
  auto judgement = judge(
      request.private_data(), [&] { return request.same_user(); }, clock::now());
  if (auto whom = std::get_if<admission>(&judgement))
    return *whom;
  auto& [reply, why] = std::get<rejection>(judgement);
  if (why)
    log_for("transport")
        ->warn("connection from {} refused ({}): {}", to_string(request.peer()),
               to_string(why.code()), why.text());
  request.reject(reply);
  return std::nullopt;
}

} // namespace troupe::transport
