// From words to a command that can be run.
#pragma once

#include "settings.hpp"

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace troupe::cli {

class session;

/// Carries a command out. @returns the exit code.
using command_action = std::function<int(session&)>;

/// What the words of a command may be completed with.
enum class operand_kind : unsigned char { none, job, actor, command };

/// One command, for completion.
struct command_info {
  std::string name;
  std::vector<std::string> options; ///< "--json" ...
  operand_kind operand = operand_kind::none;
};

/// A command line under construction: each group of commands adds its own.
class command_builder {
public:
  command_builder(CLI::App& app, std::vector<std::string> behind_dashes)
      : app_(app), behind_dashes_(std::move(behind_dashes)) {}

  CLI::App& app() noexcept { return app_; }

  /// Makes the command `name`, whose words are completed with `operand`. To be called once for each
  /// command.
  CLI::App& add(const std::string& name, const std::string& help,
                operand_kind operand = operand_kind::none);

  /// Says what the command that is being parsed does.
  void choose(command_action what) { chosen_ = std::move(what); }

  /// The words behind "--", for the command that wants them.
  std::vector<std::string> take_behind_dashes();

  /// All words that no option or operand took, and those behind "--". (CLI11 would take a word like
  /// "[a,b]" apart if it were an operand of several words.)
  std::vector<std::string> take_words();

  /// Words that nobody took.
  std::vector<std::string> unexpected_words() const;

  const command_action& chosen() const noexcept { return chosen_; }
  bool has_untaken_words() const noexcept { return !behind_dashes_.empty(); }
  const std::vector<std::pair<CLI::App*, operand_kind>>& commands() const noexcept {
    return commands_;
  }

private:
  CLI::App& app_;
  std::vector<std::string> behind_dashes_;
  bool words_taken_ = false;
  command_action chosen_;
  std::vector<std::pair<CLI::App*, operand_kind>> commands_;
};

void add_node_commands(command_builder& builder);
void add_job_commands(command_builder& builder);
void add_submit_command(command_builder& builder);
void add_wait_command(command_builder& builder);
void add_output_command(command_builder& builder);
void add_control_commands(command_builder& builder);
void add_doctor_command(command_builder& builder);

/// Where the words come from.
enum class word_source : unsigned char {
  arguments, ///< of the program: options of the connection are allowed, no command means the shell
  shell,
};

/// What words ask for.
struct parsed_line {
  connection_options options;
  command_action command; ///< empty: nothing, or the shell
  std::string answer;     ///< to be printed instead of running anything: help, or what is wrong
  int exit_code = 0;      ///< for `answer`
};

parsed_line parse_words(std::vector<std::string> words, word_source source);

/// Every command, in the order of the help.
std::vector<command_info> list_commands();

} // namespace troupe::cli
