// send, shutdown, version.
#include "command_line.hpp"
#include "format.hpp"
#include "json.hpp"
#include "session.hpp"
#include "troupe/version.hpp"

#include <CLI/CLI.hpp>

namespace troupe::cli {

namespace {

int send_command(session& s, const command_request& request, bool as_json) {
  auto said = s.ask(request);
  if (!said)
    return s.report(said.error());
  if (as_json) {
    s.out().print(to_text({{"actor", request.actor}, {"answer", *said}}));
  } else {
    auto text = printable_lines(*said);
    s.out().print(text.empty() || text.ends_with('\n') ? text : text + "\n");
  }
  return exit_code::ok;
}

int shut_down(session& s) {
  auto done = s.ask(shutdown_request{});
  if (!done)
    return s.report(done.error());
  s.out().print("the cluster ends\n");
  return exit_code::ok;
}

int show_version(session& s, bool as_json) {
  s.out().print(as_json ? to_text({{"version", std::string{version()}}})
                        : "troupe " + std::string{version()} + "\n");
  return exit_code::ok;
}

} // namespace

void add_control_commands(command_builder& builder) {
  struct send_options {
    command_request request;
    bool as_json = false;
  };
  auto sent = std::make_shared<send_options>();
  auto& send = builder.add("send",
                           "Tell an actor something and print its answer: send ACTOR WORDS; words "
                           "that begin with '-' go behind '--'",
                           operand_kind::actor);
  send.add_option("ACTOR", sent->request.actor, "Its name, see `actors`")->required();
  send.add_flag("--json", sent->as_json, "Print JSON");
  send.callback([&builder, sent] {
    sent->request.words = builder.take_words();
    builder.choose([sent](session& s) { return send_command(s, sent->request, sent->as_json); });
  });

  auto& shutdown = builder.add("shutdown", "End the cluster: kill all tasks, end all nodes");
  shutdown.callback([&builder] { builder.choose(shut_down); });

  auto as_json = std::make_shared<bool>(false);
  auto& version = builder.add("version", "Print the version of this program");
  version.add_flag("--json", *as_json, "Print JSON");
  version.callback([&builder, as_json] {
    builder.choose([as_json](session& s) { return show_version(s, *as_json); });
  });
}

} // namespace troupe::cli
