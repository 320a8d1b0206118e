#include "shell.hpp"

#include "command_line.hpp"
#include "completion.hpp"
#include "format.hpp"
#include "line_reader.hpp"
#include "runner.hpp"
#include "session.hpp"
#include "troupe/version.hpp"
#include "words.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <map>
#include <poll.h>
#include <unistd.h>

namespace troupe::cli {

namespace {

constexpr std::chrono::milliseconds completion_patience{1000};
constexpr std::chrono::milliseconds completion_memory{2000};

struct line_end {
  int code = exit_code::ok;
  bool leave = false;
};

line_end run_line(session& s, std::string_view line) {
  auto words = split_words(line);
  if (!words) {
    s.out().complain(words.error().text());
    return {exit_code::usage, false};
  }
  if (words->empty())
    return {};
  if (words->size() == 1 && (words->front() == "exit" || words->front() == "quit"))
    return {exit_code::ok, true};
  auto parsed = parse_words(std::move(*words), word_source::shell);
  return {run_parsed(s, parsed), false};
}

/// Jobs and actors for completion; asked for only while there is a connection, and not at every
/// key.
class operand_cache {
public:
  explicit operand_cache(session& s) : session_(s) {}

  std::vector<std::string> get(operand_kind kind) {
    auto now = std::chrono::steady_clock::now();
    auto& known = known_[kind];
    if (known.until < now && session_.connected()) {
      known.words = ask(kind);
      known.until = now + completion_memory;
    }
    return known.words;
  }

private:
  std::vector<std::string> ask(operand_kind kind) {
    std::vector<std::string> words;
    if (kind == operand_kind::actor)
      return session_.ask(list_actors_request{}, completion_patience).value_or(words);
    auto jobs = session_.ask(list_jobs_request{}, completion_patience);
    if (jobs)
      for (auto& job : *jobs)
        words.push_back(std::to_string(job.id));
    return words;
  }

  struct entry {
    std::vector<std::string> words;
    std::chrono::steady_clock::time_point until;
  };

  session& session_;
  std::map<operand_kind, entry> known_;
};

void greet(session& s) {
  s.out().print("Troupe " + std::string{version()} +
                ". `help` lists the commands, `exit` or Ctrl-D leaves.\n");
  auto info = s.ask(info_request{});
  if (!info) {
    s.report(info.error());
    s.out().note("The next command that needs the controller tries again.\n");
    s.stop().clear();
    return;
  }
  auto connection = s.controller();
  if (connection)
    s.out().print("Connected to " + printable(info->controller) + " at " +
                  to_string((*connection)->where()) + " over " + (*connection)->device_name() +
                  ".\n");
}

/// Lines of standard input.
class script_lines {
public:
  explicit script_lines(const interrupts& stop) : stop_(stop) {}

  /// @returns false at the end, or at Ctrl-C.
  bool next(std::string& line) {
    for (;;) {
      auto end = buffer_.find('\n');
      if (end != buffer_.npos || (ended_ && !buffer_.empty())) {
        line = buffer_.substr(0, end);
        buffer_.erase(0, end == buffer_.npos ? end : end + 1);
        return true;
      }
      if (ended_ || !fill())
        return false;
    }
  }

private:
  bool fill() {
    constexpr size_t block = 4096;
    std::array<char, block> bytes{};
    for (;;) {
      std::array<pollfd, 2> watched{{{STDIN_FILENO, POLLIN, 0}, {stop_.fd(), POLLIN, 0}}};
      ::poll(watched.data(), watched.size(), -1);
      if (stop_.raised())
        return false;
      auto got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
      if (got < 0 && (errno == EINTR || errno == EAGAIN))
        continue;
      ended_ = got <= 0;
      buffer_.append(bytes.data(), got > 0 ? static_cast<size_t>(got) : 0);
      return true;
    }
  }

  const interrupts& stop_;
  std::string buffer_;
  bool ended_ = false;
};

} // namespace

int run_shell(session& s) {
  greet(s);
  auto commands = list_commands();
  commands.push_back({"exit", {}, operand_kind::none});
  operand_cache known{s};
  auto complete = [&](std::string_view line) {
    return complete_line(line, commands, [&](operand_kind kind) { return known.get(kind); });
  };
  line_reader lines{"troupe> ", s.stop(), complete, default_history_file()};
  std::string line;
  for (;;) {
    switch (lines.read(line)) {
    case line_reader::outcome::end:
      s.out().print("\n");
      return exit_code::ok;
    case line_reader::outcome::interrupted:
      continue;
    case line_reader::outcome::line:
      break;
    }
    if (run_line(s, line).leave)
      return exit_code::ok;
    s.stop().clear();
  }
}

int run_script(session& s) {
  script_lines lines{s.stop()};
  std::string line;
  while (lines.next(line)) {
    auto how = run_line(s, line);
    if (how.leave || how.code != exit_code::ok)
      return how.code;
  }
  return s.stop().raised() ? exit_code::interrupted : exit_code::ok;
}

} // namespace troupe::cli
