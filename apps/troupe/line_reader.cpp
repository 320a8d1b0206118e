#include "line_reader.hpp"

#include "interrupts.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <histedit.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::cli {

namespace {

constexpr int history_lines = 1000;
constexpr char control_d = 4;

struct edit_release {
  void operator()(EditLine* edit) const noexcept { ::el_end(edit); }
};

struct history_release {
  void operator()(History* history) const noexcept { ::history_end(history); }
};

void make_directories(const std::filesystem::path& directory) {
  std::error_code problem;
  if (directory.empty() || std::filesystem::exists(directory, problem))
    return;
  make_directories(directory.parent_path());
  ::mkdir(directory.c_str(), S_IRWXU);
}

/// libedit holds its line in characters of the locale, and gives it out in bytes.
int characters_in(const std::string& text) {
  auto count = std::mbstowcs(nullptr, text.c_str(), 0);
  return static_cast<int>(count == static_cast<size_t>(-1) ? text.size() : count);
}

} // namespace

struct line_reader::parts {
  parts(std::string shown, interrupts& stopper, completer completing,
        std::filesystem::path file_of_history)
      : prompt(std::move(shown)), stop(stopper), complete(std::move(completing)),
        history_file(std::move(file_of_history)), history(::history_init()),
        edit(::el_init("troupe", stdin, stdout, stderr)) {
    if (!edit || !history)
      return;
    HistEvent event{};
    ::history(history.get(), &event, H_SETSIZE, history_lines);
    ::history(history.get(), &event, H_SETUNIQUE, 1);
    if (!history_file.empty())
      ::history(history.get(), &event, H_LOAD, history_file.c_str());
    ::el_set(edit.get(), EL_CLIENTDATA, this);
    ::el_set(edit.get(), EL_PROMPT, &show_prompt);
    ::el_set(edit.get(), EL_EDITOR, "emacs");
    ::el_set(edit.get(), EL_HIST, ::history, history.get());
    ::el_set(edit.get(), EL_GETCFN, &read_character);
    ::el_set(edit.get(), EL_ADDFN, "complete", "Complete the word", &complete_word);
    ::el_set(edit.get(), EL_BIND, "^I", "complete", nullptr);
    ::el_set(edit.get(), EL_BIND, "^R", "em-inc-search-prev", nullptr);
    ::el_source(edit.get(), nullptr); // ~/.editrc
  }

  static parts& of(EditLine* edit) {
    void* self = nullptr;
    ::el_get(edit, EL_CLIENTDATA, &self);
    return *static_cast<parts*>(self);
  }

  static char* show_prompt(EditLine* edit) { return of(edit).prompt.data(); }

  /// Waits for the keyboard and for Ctrl-C alike. @returns as libedit wants: 1, 0 at the end, -1.
  static int read_character(EditLine* edit, wchar_t* character) {
    auto& self = of(edit);
    std::mbstate_t state{};
    for (;;) {
      std::array<pollfd, 2> watched{{{STDIN_FILENO, POLLIN, 0}, {self.stop.fd(), POLLIN, 0}}};
      if (::poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR)
        return -1;
      if (self.stop.raised()) {
        errno = EINTR;
        return -1;
      }
      if (watched[0].revents == 0)
        continue;
      char byte = 0;
      auto got = ::read(STDIN_FILENO, &byte, 1);
      if (got < 0 && (errno == EINTR || errno == EAGAIN))
        continue;
      if (got <= 0)
        return static_cast<int>(got);
      // A Ctrl-D from before the terminal went raw, typed ahead, reads as zero.
      if (byte == 0)
        byte = control_d;
      auto used = std::mbrtowc(character, &byte, 1, &state);
      if (used == static_cast<size_t>(-2)) // the first byte of several
        continue;
      if (used == static_cast<size_t>(-1))
        state = {}; // no character of this locale
      else
        return 1;
    }
  }

  static unsigned char complete_word(EditLine* edit, int) {
    auto& self = of(edit);
    auto info = ::el_line(edit);
    std::string_view line{info->buffer, static_cast<size_t>(info->cursor - info->buffer)};
    auto found = self.complete(line);
    if (found.candidates.empty())
      return CC_REFRESH_BEEP;
    auto addition = completing_text(found);
    if (!addition.empty()) {
      ::el_deletestr(edit, characters_in(std::string{line.substr(found.from)}));
      ::el_insertstr(edit, addition.c_str());
      return CC_REFRESH;
    }
    std::printf("\n%s", in_columns(found.candidates, self.columns()).c_str());
    std::fflush(stdout);
    return CC_REDISPLAY;
  }

  size_t columns() const {
    constexpr size_t usual = 80;
    winsize window{};
    auto known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0;
    return known ? window.ws_col : usual;
  }

  void remember(const std::string& line) {
    HistEvent event{};
    ::history(history.get(), &event, H_ENTER, line.c_str());
    if (history_file.empty())
      return;
    make_directories(history_file.parent_path());
    ::history(history.get(), &event, H_SAVE, history_file.c_str());
  }

  std::string prompt;
  interrupts& stop;
  completer complete;
  std::filesystem::path history_file;
  std::unique_ptr<History, history_release> history;
  std::unique_ptr<EditLine, edit_release> edit; // uses the history
};

line_reader::line_reader(std::string prompt, interrupts& stop, completer complete,
                         std::filesystem::path history_file)
    : parts_(std::make_unique<parts>(std::move(prompt), stop, std::move(complete),
                                     std::move(history_file))) {}

line_reader::~line_reader() = default;

line_reader::outcome line_reader::read(std::string& line) {
  line.clear();
  if (!parts_->edit || !parts_->history)
    return outcome::end;
  ::el_resize(parts_->edit.get()); // the window may have changed since
  int length = 0;
  auto text = ::el_gets(parts_->edit.get(), &length);
  if (parts_->stop.raised()) {
    parts_->stop.clear();
    ::el_reset(parts_->edit.get());
    std::printf("^C\n");
    std::fflush(stdout);
    return outcome::interrupted;
  }
  if (!text || length <= 0)
    return outcome::end;
  line.assign(text, static_cast<size_t>(length));
  while (line.ends_with('\n') || line.ends_with('\r'))
    line.pop_back();
  if (line.find_first_not_of(" \t") != line.npos)
    parts_->remember(line);
  return outcome::line;
}

std::filesystem::path default_history_file() {
  auto state = std::getenv("XDG_STATE_HOME");
  auto home = std::getenv("HOME");
  std::filesystem::path base;
  if (state && *state == '/')
    base = state;
  else if (home && *home == '/')
    base = std::filesystem::path{home} / ".local/state";
  else
    return {};
  return base / "troupe/history";
}

} // namespace troupe::cli
