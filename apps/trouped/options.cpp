#include "options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <troupe/framework/suggest.hpp>
#include <troupe/version.hpp>
#include <vector>

namespace trouped {

namespace {

/// What is wrong with a command line, in one sentence.
std::string explain(const CLI::App& app, const CLI::ParseError& e) {
  if (!dynamic_cast<const CLI::ExtrasError*>(&e))
    return e.what();
  auto extras = app.remaining();
  auto flag = std::find_if(extras.begin(), extras.end(),
                           [](const std::string& word) { return word.starts_with('-'); });
  if (flag == extras.end())
    return "unexpected argument '" + extras.front() + "'";
  std::vector<std::string> names;
  for (auto* option : app.get_options())
    names.push_back(option->get_name());
  auto name = flag->substr(0, flag->find('='));
  return "unknown flag '" + name + "'" + troupe::did_you_mean(name, names);
}

} // namespace

std::optional<options> parse(int argc, char** argv, int& exit_status) {
  CLI::App app{"Runs one node of a Troupe cluster: a controller, a worker, or both."};
  options out;
  std::string file, new_key;
  app.set_version_flag("--version", "trouped " + std::string{troupe::version()});
  app.add_option("--config", file, "Configuration file (TOML); flags override it")
      ->option_text("FILE");
  app.add_flag("--check", out.check_only, "Only read and check the configuration");
  app.add_option("--new-key", new_key,
                 "Only make a new cluster key and write it to FILE, which must not exist")
      ->option_text("FILE");
  std::map<std::string, std::string> values; // by key
  for (auto& key : troupe::config_keys()) {
    auto help = std::string{key.help} + " (" + key.range + "; default " + key.fallback + ")";
    app.add_option(key.flag_name(), values[key.name()], help)
        ->group("[" + std::string{key.section} + "]")
        ->type_name(std::string{to_string(key.kind)});
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    exit_status = 0;
    if (e.get_exit_code() == 0) { // --help and --version
      app.exit(e);
    } else {
      std::fprintf(stderr, "trouped: %s; see `trouped --help`\n", explain(app, e).c_str());
      exit_status = 2;
    }
    return std::nullopt;
  }
  if (!file.empty())
    out.file = file;
  if (app.get_option("--new-key")->count() > 0)
    out.new_key = new_key;
  if (auto named = std::getenv("TROUPE_KEY_FILE"); named && *named)
    out.flags.push_back({"cluster.key_file", named, "TROUPE_KEY_FILE"}); // flags come after it
  for (auto& key : troupe::config_keys())
    if (app.get_option(key.flag_name())->count() > 0)
      out.flags.push_back({key.name(), values[key.name()], key.flag_name()});
  return out;
}

} // namespace trouped
