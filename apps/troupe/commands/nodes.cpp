// nodes, info, actors: what the cluster consists of.
#include "command_line.hpp"
#include "format.hpp"
#include "json.hpp"
#include "session.hpp"
#include "table.hpp"
#include "troupe/framework/units.hpp"

#include <CLI/CLI.hpp>

namespace troupe::cli {

namespace {

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (auto& word : words)
    text += (text.empty() ? "" : ",") + word;
  return text;
}

std::string node_table(const std::vector<node_summary>& nodes, bool colours) {
  table shown{{{"NODE"},
               {"ROLES"},
               {"STATE"},
               {"ADDRESS"},
               {"PATH"},
               {"CPUS", true},
               {"MEMORY", true},
               {"RUNNING", true},
               {"FINISHED", true},
               {"BUSY", true},
               {"HEARD", true}}};
  for (auto& node : nodes)
    shown.add({{node.id},
               {join(node.roles)},
               {node.state, tint_of_state(node.state)},
               {node.address},
               {node.path},
               {std::to_string(node.cpus_granted) + "/" + std::to_string(node.cpus)},
               {format_size(node.memory_granted) + "/" + format_size(node.memory)},
               {std::to_string(node.running)},
               {std::to_string(node.finished)},
               {std::to_string((node.cpu_busy_permille + 5) / 10) + "%"},
               {format_age(node.heard_ms_ago) + " ago"}});
  return shown.render(colours);
}

int show_nodes(session& s, bool as_json) {
  auto nodes = s.ask(list_nodes_request{});
  if (!nodes)
    return s.report(nodes.error());
  s.out().print(as_json ? to_text(json_of(*nodes)) : node_table(*nodes, s.out().colours()));
  return exit_code::ok;
}

int show_info(session& s, bool as_json) {
  auto info = s.ask(info_request{});
  if (!info)
    return s.report(info.error());
  if (as_json) {
    s.out().print(to_text(json_of(*info)));
  } else {
    s.out().print("version:     " + printable(info->version) + "\ncontroller:  " +
                  printable(info->controller) + "\ndevice:      " + printable(info->device) + " (" +
                  printable(info->device_reason) + ")" +
                  "\nup for:      " + format_age(info->uptime_ms) + "\n");
  }
  return exit_code::ok;
}

int show_actors(session& s, bool as_json) {
  auto names = s.ask(list_actors_request{});
  if (!names)
    return s.report(names.error());
  if (as_json) {
    s.out().print(to_text(json(*names)));
  } else {
    std::string text;
    for (auto& name : *names)
      text += printable(name) + "\n";
    s.out().print(text);
  }
  return exit_code::ok;
}

void add_listing(command_builder& builder, const std::string& name, const std::string& help,
                 int (*show)(session&, bool)) {
  auto as_json = std::make_shared<bool>(false);
  auto& command = builder.add(name, help);
  command.add_flag("--json", *as_json, "Print JSON");
  command.callback(
      [&builder, as_json, show] { builder.choose([=](session& s) { return show(s, *as_json); }); });
}

} // namespace

void add_node_commands(command_builder& builder) {
  add_listing(builder, "info", "Tell about the controller and the device it uses", show_info);
  add_listing(builder, "nodes", "List the nodes, with what they offer and do", show_nodes);
  add_listing(builder, "actors", "List the actors that take commands (see `send`)", show_actors);
}

} // namespace troupe::cli
