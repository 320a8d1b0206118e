#include "role.hpp"

#include "streams.hpp"
#include "support/child_process.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <doctest/doctest.h>
#include <iostream>
#include <thread>

namespace channel_test {

namespace {

std::vector<std::string> playing;

uint64_t number(size_t index) {
  return index < playing.size() ? std::strtoull(playing[index].c_str(), nullptr, 10) : 0;
}

void say(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

void play() {
  node here;
  say("port " + std::to_string(here.address().port));
  bool sends = playing.at(0) == "send";
  checking_reader reader{sends ? 1 : std::max<size_t>(number(1), 1)};
  if (auto pause = sends ? 0 : number(2); pause > 0)
    reader.limit = pause;
  bool paused = false;
  reader.on_piece = [&] {
    if (playing.at(0) == "receive-slowly")
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    if (reader.bytes >= reader.limit && !std::exchange(paused, true))
      say("paused");
  };
  REQUIRE(turn_until({&here}, [&] { return !here.accepted.empty(); }));
  auto& stream = *here.accepted.front();
  stream.read_with(reader);
  if (sends)
    for (uint64_t sent = 0; sent < number(1);) {
      auto next = segment(sent, std::min(number(1) - sent, number(2)));
      sent += next.size();
      stream.send(next);
    }
  while (!reader.ended)
    here.loop().turn_or_sleep(std::chrono::milliseconds{100});
  say("bytes " + std::to_string(reader.bytes) + (reader.correct ? " right" : " wrong"));
}

} // namespace

// The role runs as a test case, so that its checks report as those of any test.
TEST_CASE("the second process" * doctest::skip()) {
  play();
}

int play_role(const std::vector<std::string>& words) {
  playing = words;
  doctest::Context context;
  context.setOption("test-case", "the second process");
  context.setOption("no-skip", true);
  context.setOption("minimal", true);
  // Its standard output is for the lines that the test reads.
  context.setCout(&std::cerr);
  return context.run();
}

} // namespace channel_test
