#include "command_line.hpp"

#include "session.hpp"
#include "troupe/framework/suggest.hpp"
#include "troupe/version.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace troupe::cli {

namespace {

constexpr auto footer = R"(
Sizes are written like 512MiB or 2G. `troupe COMMAND --help` tells more about a command.

The controller is the one that --controller names, else TROUPE_CONTROLLER, else [client] controller in
the configuration file (--config, else ~/.config/troupe/troupe.toml, else /etc/troupe/troupe.toml), else
127.0.0.1:4747.

Exit status: 0 done; 1 the cluster said no, or it is not there; 2 wrong usage; 3 no controller, or it was
lost; 130 interrupted. `wait` and `submit --wait` end with the job's own outcome: 0 when all its tasks
succeeded, else the first failure's exit code (128 + N for signal N, 125 when it could not be run), 130
when it was cancelled.)";

void add_connection_options(CLI::App& app, connection_options& options) {
  app.add_option("--controller", options.controller, "Where the controller is")
      ->type_name("HOST[:PORT]");
  app.add_option("--config", options.config, "Configuration file")->type_name("FILE");
  app.add_option("--device", options.device,
                 "auto, verbs, verbs:NAME, soft or soft:tcp; TROUPE_DEVICE likewise")
      ->type_name("DEVICE");
  app.add_option("--key-file", options.key_file,
                 "The cluster's key; TROUPE_KEY_FILE or [cluster] key_file likewise")
      ->type_name("FILE");
  app.set_version_flag("--version", std::string{version()}, "Print the version of this program");
}

bool is_option(const std::string& word) {
  return word.starts_with('-') && word != "-";
}

/// The command that `app`'s words named, else `app`.
CLI::App& innermost(CLI::App& app) {
  auto used = app.get_subcommands();
  return used.empty() ? app : *used.front();
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (auto option : command.get_options())
    for (auto& name : option->get_lnames())
      names.push_back("--" + name);
  return names;
}

/// `what`, and where to read on.
std::string with_hint(std::string what, CLI::App& app, word_source source) {
  auto& command = innermost(app);
  auto name = &command == &app || command.get_name() == "help" ? "" : command.get_name();
  what += what.ends_with('?') ? " See " : "; see ";
  if (source == word_source::shell)
    return what + (name.empty() ? "`help`" : "`help " + name + "`");
  return what + (name.empty() ? "`troupe --help`" : "`troupe " + name + " --help`");
}

/// What is wrong with words that nothing expected, the first of which is `word`.
std::string explain_unexpected(CLI::App& app, const command_builder& builder,
                               const std::string& word) {
  auto& command = innermost(app);
  if (is_option(word)) {
    auto name = word.substr(0, word.find('='));
    auto known = option_names(command);
    auto where = &command == &app ? "" : " of `" + command.get_name() + "`";
    return "unknown option '" + name + "'" + where + did_you_mean(name, known);
  }
  if (command.get_name() == "submit")
    return "put '--' before the command: submit [OPTIONS] -- " + word + " ...";
  if (&command != &app)
    return "`" + command.get_name() + "` does not take '" + word + "'";
  std::vector<std::string> names;
  for (auto& [known, operand] : builder.commands())
    names.push_back(known->get_name());
  return "unknown command '" + word + "'" + did_you_mean(word, names);
}

/// The help of `command`, which is `app` or one of its commands.
std::string help_of(const CLI::App& app, const CLI::App& command) {
  auto name = app.get_name();
  if (&command != &app)
    name += (name.empty() ? "" : " ") + command.get_name();
  return app.get_formatter()->make_help(&command, name, CLI::AppFormatMode::Normal);
}

void add_help_command(command_builder& builder) {
  auto asked = std::make_shared<std::string>();
  auto& help = builder.add("help", "Explain a command, or list them all", operand_kind::command);
  help.add_option("COMMAND", *asked, "The command");
  help.callback([&builder, asked] {
    auto& app = builder.app();
    const CLI::App* about = asked->empty() ? &app : nullptr;
    std::vector<std::string> names;
    for (auto& [command, operand] : builder.commands()) {
      names.push_back(command->get_name());
      if (names.back() == *asked)
        about = command;
    }
    if (!about)
      throw CLI::ValidationError{"no command '" + *asked + "'" + did_you_mean(*asked, names)};
    builder.choose([text = help_of(app, *about)](session& s) {
      s.out().print(text);
      return exit_code::ok;
    });
  });
}

void add_commands(command_builder& builder) {
  add_node_commands(builder);
  add_submit_command(builder);
  add_job_commands(builder);
  add_wait_command(builder);
  add_output_command(builder);
  add_control_commands(builder);
  add_doctor_command(builder);
  add_help_command(builder);
  builder.app().require_subcommand(0, 1); // so that a word may be spelled like a command
  builder.app().allow_extras();           // to say ourselves what is wrong with them
  builder.app().footer(footer);
}

} // namespace

CLI::App& command_builder::add(const std::string& name, const std::string& help,
                               operand_kind operand) {
  auto command = app_.add_subcommand(name, help);
  command->fallthrough();
  commands_.emplace_back(command, operand);
  return *command;
}

std::vector<std::string> command_builder::take_behind_dashes() {
  return std::exchange(behind_dashes_, {});
}

std::vector<std::string> command_builder::take_words() {
  words_taken_ = true;
  std::vector<std::string> words;
  for (auto& word : app_.remaining(true))
    if (!is_option(word))
      words.push_back(word);
  for (auto& word : take_behind_dashes())
    words.push_back(std::move(word));
  return words;
}

std::vector<std::string> command_builder::unexpected_words() const {
  auto words = app_.remaining(true);
  if (words_taken_)
    std::erase_if(words, [](const std::string& word) { return !is_option(word); });
  return words;
}

parsed_line parse_words(std::vector<std::string> words, word_source source) {
  // CLI11 would look for options behind "--" of a subcommand: they are kept from it.
  std::vector<std::string> behind;
  auto dashes = std::find(words.begin(), words.end(), "--");
  if (dashes != words.end()) {
    behind.assign(dashes + 1, words.end());
    words.erase(dashes, words.end());
  }
  auto in_shell = source == word_source::shell;
  CLI::App app{"Troupe: run jobs on a cluster of actors.", in_shell ? "" : "troupe"};
  parsed_line line;
  if (!in_shell)
    add_connection_options(app, line.options);
  command_builder builder{app, std::move(behind)};
  add_commands(builder);
  auto complain = [&](const std::string& what) {
    line.answer = with_hint(what, app, source);
    line.exit_code = exit_code::usage;
  };
  std::reverse(words.begin(), words.end()); // as CLI11 wants them
  try {
    app.parse(std::move(words));
    if (auto extras = builder.unexpected_words(); !extras.empty())
      complain(explain_unexpected(app, builder, extras.front()));
    else if (builder.has_untaken_words())
      complain("'--' and what stands behind it is only for `submit` and `send`");
    else
      line.command = builder.chosen();
  } catch (const CLI::CallForVersion&) {
    line.answer = "troupe " + std::string{version()} + "\n";
  } catch (const CLI::CallForHelp&) {
    line.answer = help_of(app, innermost(app));
  } catch (const CLI::Error& problem) {
    // A word that is wrong tells more than one that is missing because of it.
    auto extras = builder.unexpected_words();
    complain(extras.empty() ? problem.what() : explain_unexpected(app, builder, extras.front()));
  }
  return line;
}

std::vector<command_info> list_commands() {
  CLI::App app;
  command_builder builder{app, {}};
  add_commands(builder);
  std::vector<command_info> all;
  for (auto& [command, operand] : builder.commands())
    all.push_back({command->get_name(), option_names(*command), operand});
  return all;
}

} // namespace troupe::cli
