// Who may connect, without a network: what the two sides say is handed from one to the other.
#include "troupe/transport/introduction.hpp"

#include <cstring>
#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::transport;
using namespace std::chrono_literals;

namespace {

constexpr connection_terms stream_terms{connection_kind::stream, 32, 8256, 0};
constexpr connection_terms listener_terms{connection_kind::stream, 16, 4096, 0};

using admission = gate::admission;
using rejection = gate::rejection;

const gate::clock::time_point start{1000s};

struct visit {
  explicit visit(gate& at, bool vouched_for = true) : where(at), same_user(vouched_for) {}

  std::variant<admission, rejection> say(const packed_hello& what) {
    return where.judge(
        what,
        [this] {
          ++asked;
          return same_user;
        },
        now);
  }

  rejection refused(const packed_hello& what) {
    auto judgement = say(what);
    REQUIRE(std::holds_alternative<rejection>(judgement));
    return std::get<rejection>(judgement);
  }

  admission admitted(const packed_hello& what) {
    auto judgement = say(what);
    REQUIRE(std::holds_alternative<admission>(judgement));
    return std::get<admission>(judgement);
  }

  gate& where;
  bool same_user;
  int asked = 0;
  gate::clock::time_point now = start;
};

packed_hello challenge_for(visit& at, const introduction& who) {
  auto answered = at.refused(who.first());
  CHECK_FALSE(answered.why); // the way things go
  return answered.reply;
}

refusal reason_of(const packed_hello& said) {
  auto h = decode_hello(said);
  REQUIRE(h);
  REQUIRE(h->step == hello_step::refusal);
  return h->reason;
}

void flip(packed_hello& bytes, size_t at) {
  bytes[at] ^= std::byte{1};
}

} // namespace

TEST_CASE("two sides with one key get to know each other's terms") {
  auto key = shared_key::random();
  gate where{key};
  visit at{where};
  connection_terms ours{connection_kind::memory, 0, 0, 0x1122334455667788};
  introduction who{key, ours};
  REQUIRE(who.asks_first());
  auto proof = who.answer(challenge_for(at, who));
  REQUIRE(proof);
  auto whom = at.admitted(*proof);
  CHECK(whom.theirs == ours);
  connection_terms theirs{connection_kind::memory, 7, 9, 0};
  auto concluded = who.conclude(where.welcome(whom, theirs));
  REQUIRE(concluded);
  CHECK(*concluded == theirs);
  CHECK(at.asked == 0); // the key decides, not the user
}

TEST_CASE("without keys, one user on one machine") {
  gate where{nullptr};
  introduction who{nullptr, stream_terms};
  REQUIRE_FALSE(who.asks_first());
  visit at{where};
  auto whom = at.admitted(who.first());
  CHECK(at.asked == 1);
  CHECK(whom.theirs == stream_terms);
  auto concluded = who.conclude(where.welcome(whom, listener_terms));
  REQUIRE(concluded);
  CHECK(*concluded == listener_terms);

  visit stranger{where, false};
  auto refused = stranger.refused(who.first());
  CHECK(refused.why.code() == errc::permission_denied);
  CHECK(reason_of(refused.reply) == refusal::other_user);
  CHECK(introduction::explain({}, refused.reply).code() == errc::permission_denied);
}

TEST_CASE("one side without the key") {
  auto key = shared_key::random();
  {
    gate where{key};
    visit at{where};
    introduction who{nullptr, stream_terms};
    auto refused = at.refused(who.first());
    CHECK(refused.why.code() == errc::unauthenticated);
    CHECK(reason_of(refused.reply) == refusal::needs_key);
    auto why = introduction::explain({errc::refused, "refused"}, refused.reply);
    CHECK(why.code() == errc::unauthenticated);
    CHECK(why.text().find("--key-file") != std::string::npos);
  }
  {
    gate where{nullptr};
    visit at{where};
    introduction who{key, stream_terms};
    auto refused = at.refused(who.first());
    CHECK(refused.why.code() == errc::unauthenticated);
    auto answered = who.answer(refused.reply);
    REQUIRE_FALSE(answered);
    CHECK(answered.error().code() == errc::unauthenticated);
    CHECK_FALSE(who.should_say_farewell()); // the other side knows
  }
}

TEST_CASE("different keys: the connecting side finds out, and tells") {
  gate where{shared_key::random()};
  visit at{where};
  introduction who{shared_key::random(), stream_terms};
  auto answered = who.answer(challenge_for(at, who));
  REQUIRE_FALSE(answered);
  CHECK(answered.error().code() == errc::unauthenticated);
  REQUIRE(who.should_say_farewell());
  auto told = at.refused(who.farewell());
  CHECK(told.why.code() == errc::unauthenticated);
}

TEST_CASE("a proof without the key is refused, and its challenge is used up") {
  gate where{shared_key::random()};
  visit at{where};
  introduction who{shared_key::random(), stream_terms};
  auto challenge = decode_hello(challenge_for(at, who));
  REQUIRE(challenge);
  hello h;
  h.step = hello_step::proof;
  h.receive_slabs = 32;
  std::memcpy(&h.challenge, challenge->nonce.data(), sizeof h.challenge);
  auto refused = at.refused(encode(h));
  CHECK(refused.why.code() == errc::unauthenticated);
  CHECK(reason_of(refused.reply) == refusal::wrong_key);
  CHECK(reason_of(at.refused(encode(h)).reply) == refusal::stale);
}

TEST_CASE("nothing can be said a second time") {
  auto key = shared_key::random();
  gate where{key};
  visit at{where};
  introduction who{key, stream_terms};
  auto proof = who.answer(challenge_for(at, who));
  REQUIRE(proof);
  auto whom = at.admitted(*proof);
  auto welcome = where.welcome(whom, listener_terms);
  REQUIRE(who.conclude(welcome));

  // The proof to this gate, to it after another challenge, and to another gate with the key.
  CHECK(reason_of(at.refused(*proof).reply) == refusal::stale);
  introduction second{key, stream_terms};
  auto challenge = challenge_for(at, second);
  auto replayed = *proof;
  std::memcpy(replayed.data() + 16, challenge.data() + 16, 8); // names the new challenge
  CHECK(reason_of(at.refused(replayed).reply) == refusal::wrong_key);
  gate other{key};
  visit at_other{other};
  CHECK(reason_of(at_other.refused(*proof).reply) == refusal::stale);

  // A challenge or a welcome of one connection does not do for another.
  introduction third{key, stream_terms};
  CHECK_FALSE(third.answer(challenge));
  auto fresh = challenge_for(at, third);
  REQUIRE(third.answer(fresh));
  auto concluded = third.conclude(welcome);
  REQUIRE_FALSE(concluded);
  CHECK(concluded.error().code() == errc::unauthenticated);
}

TEST_CASE("nobody can be made to prove for somebody else") {
  // Somebody without the key sends back what he was told, in every place where it might fit.
  auto key = shared_key::random();
  gate where{key};
  visit at{where};
  introduction who{key, stream_terms};
  auto challenge = challenge_for(at, who);
  auto as_proof = challenge;
  as_proof[7] = static_cast<std::byte>(hello_step::proof);
  CHECK(reason_of(at.refused(as_proof).reply) == refusal::wrong_key);
  introduction victim{key, stream_terms};
  auto proof = victim.answer(challenge_for(at, victim));
  REQUIRE(proof);
  for (auto step : {hello_step::challenge, hello_step::welcome}) {
    auto reflected = *proof;
    reflected[7] = static_cast<std::byte>(step);
    CHECK_FALSE(victim.conclude(reflected));
    introduction asks{key, stream_terms};
    CHECK_FALSE(asks.answer(reflected));
  }
}

TEST_CASE("every bit that is said is covered by the proofs") {
  auto key = shared_key::random();
  gate where{key};
  for (size_t at_byte = 0; at_byte < hello_bytes; ++at_byte) {
    CAPTURE(at_byte);
    {
      visit at{where};
      introduction who{key, stream_terms};
      auto asked = who.first();
      flip(asked, at_byte);
      auto answered = at.refused(asked);
      auto proof = who.answer(answered.reply);
      if (proof) // what was said before is in the proof too
        CHECK(std::holds_alternative<rejection>(at.say(*proof)));
      else
        CHECK(proof.error());
    }
    {
      visit at{where};
      introduction who{key, stream_terms};
      auto challenge = challenge_for(at, who);
      flip(challenge, at_byte);
      CHECK_FALSE(who.answer(challenge));
    }
    {
      visit at{where};
      introduction who{key, stream_terms};
      auto proof = who.answer(challenge_for(at, who));
      REQUIRE(proof);
      auto said = *proof;
      flip(said, at_byte);
      at.refused(said);
    }
    {
      visit at{where};
      introduction who{key, stream_terms};
      auto proof = who.answer(challenge_for(at, who));
      REQUIRE(proof);
      auto welcome = where.welcome(at.admitted(*proof), listener_terms);
      flip(welcome, at_byte);
      CHECK_FALSE(who.conclude(welcome));
    }
  }
}

TEST_CASE("a challenge is good for a while, and not too many wait") {
  auto key = shared_key::random();
  gate where{key};
  visit at{where};
  introduction in_time{key, stream_terms}, too_late{key, stream_terms};
  auto first = in_time.answer(challenge_for(at, in_time));
  auto second = too_late.answer(challenge_for(at, too_late));
  REQUIRE(first);
  REQUIRE(second);
  at.now = start + gate::patience;
  at.admitted(*first);
  at.now += 1ms;
  CHECK(reason_of(at.refused(*second).reply) == refusal::stale);

  introduction early{key, stream_terms};
  auto oldest = early.answer(challenge_for(at, early));
  REQUIRE(oldest);
  introduction who{key, stream_terms};
  auto second_oldest = who.answer(challenge_for(at, who));
  REQUIRE(second_oldest);
  introduction flood{key, stream_terms};
  for (size_t i = 0; i < gate::most_challenges - 1; ++i)
    at.refused(flood.first());
  CHECK(reason_of(at.refused(*oldest).reply) == refusal::stale);
  at.admitted(*second_oldest);
}

TEST_CASE("an older or newer version is told apart from nonsense") {
  auto key = shared_key::random();
  for (bool keyed : {true, false}) {
    gate where{keyed ? key : nullptr};
    visit at{where};
    introduction who{keyed ? key : nullptr, stream_terms};
    for (unsigned version : {1U, 3U, 65535U}) {
      auto said = who.first();
      said[4] = static_cast<std::byte>(version & 255);
      said[5] = static_cast<std::byte>(version >> 8);
      auto refused = at.refused(said);
      CHECK(refused.why.code() == errc::version_mismatch);
      CHECK(refused.why.text().find(std::to_string(version)) != std::string::npos);
      // Ours says which version this is; theirs says it to us.
      CHECK(decode_hello(refused.reply));
      CHECK(introduction::explain({errc::refused, "no"}, said).code() == errc::version_mismatch);
      CHECK(who.answer(said).error().code() == errc::version_mismatch);
      CHECK(who.conclude(said).error().code() == errc::version_mismatch);
    }
  }
  gate where{key};
  visit at{where};
  // Version 1 was 24 bytes.
  packed_hello old = introduction{key, stream_terms}.first();
  old[4] = std::byte{1};
  auto judgement = where.judge(
      byte_view{old}.first(24), [] { return true; }, start);
  CHECK(std::get<rejection>(judgement).why.code() == errc::version_mismatch);
}

TEST_CASE("nonsense is a violation of the protocol") {
  auto key = shared_key::random();
  gate where{key};
  auto yes = [] { return true; };
  auto whole = introduction{key, stream_terms}.first();
  for (size_t length : {0, 1, 5, 6, 24, 47}) {
    auto judgement = where.judge(byte_view{whole}.first(length), yes, start);
    CHECK(std::get<rejection>(judgement).why.code() == errc::protocol_violation);
  }
  visit at{where};
  for (auto [place, value] : {std::pair{0, 0}, {6, 0}, {6, 3}, {7, 0}, {7, 7}, {7, 255}}) {
    auto said = whole;
    said[static_cast<size_t>(place)] = static_cast<std::byte>(value);
    CHECK(at.refused(said).why.code() == errc::protocol_violation);
  }
  for (auto step : {hello_step::challenge, hello_step::welcome, hello_step::refusal}) {
    auto said = whole;
    said[7] = static_cast<std::byte>(step);
    CHECK(at.refused(said).why.code() == errc::protocol_violation);
  }
  introduction who{key, stream_terms};
  CHECK(who.answer(whole).error().code() == errc::protocol_violation); // an ask as an answer
  CHECK(who.conclude({}).error().code() == errc::protocol_violation);
  // A listener that is silent, or says what makes no sense, does not hide the first reason.
  error reason{errc::refused, "nobody listens"};
  CHECK(introduction::explain(reason, {}).text() == reason.text());
  CHECK(introduction::explain(reason, bytes_of("HTTP/1.1 400")).text() == reason.text());
}

TEST_CASE("a hello reads back as it was") {
  hello h;
  h.step = hello_step::ask;
  h.kind = connection_kind::memory;
  h.receive_slabs = 65535;
  h.slab_bytes = 4294967295;
  h.capabilities = 0x8001;
  fill_random(h.nonce);
  fill_random(h.tag);
  auto bytes = encode(h);
  auto read = decode_hello(bytes);
  REQUIRE(read);
  CHECK(*read == h);
  hello p;
  p.step = hello_step::proof;
  p.challenge = 0x0102030405060708;
  p.token = 0xfffefdfcfbfaf9f8;
  CHECK(*decode_hello(encode(p)) == p);
  hello r;
  r.reason = static_cast<refusal>(4711); // of a newer release
  CHECK(*decode_hello(encode(r)) == r);
  CHECK(introduction::explain({}, encode(r)).code() == errc::refused);
}
