#include "table.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <set>
#include <sys/utsname.h>
#include <thread>

namespace bench {

namespace {

/// A column that the others are compared with.
struct reference {
  const char* column;
  const char* title;
};

constexpr std::array references{reference{"caf_tuned", "CAF tuned"}, reference{"verbs", "verbs"}};

struct summary {
  double median = 0;
  double least = 0;
  double most = 0;
  std::vector<double> all;
};

summary summarize(std::vector<double> values) {
  summary out;
  out.all = values;
  std::sort(values.begin(), values.end());
  out.least = values.front();
  out.most = values.back();
  auto middle = values.size() / 2;
  out.median = values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return out;
}

/// Names of values in the order in which samples have them.
std::vector<std::string> value_names(const row_result& from) {
  std::vector<std::string> out;
  for (auto& cell : from.what->cells)
    if (auto found = from.cells.find(cell.column); found != from.cells.end())
      for (auto& each : found->second)
        for (auto& [name, value] : each.values)
          if (std::find(out.begin(), out.end(), name) == out.end())
            out.push_back(name);
  return out;
}

std::optional<summary> value_of(const row_result& from, const std::string& column,
                                const std::string& name) {
  std::vector<double> values;
  if (auto found = from.cells.find(column); found != from.cells.end())
    for (auto& each : found->second)
      if (each.failure.empty() && each.skipped.empty())
        for (auto& [its_name, value] : each.values)
          if (its_name == name)
            values.push_back(value);
  if (values.empty())
    return std::nullopt;
  return summarize(std::move(values));
}

/// What a cell without a value shows.
std::string excuse_of(const row_result& from, const std::string& column) {
  if (auto found = from.cells.find(column); found != from.cells.end())
    for (auto& each : found->second) {
      if (!each.failure.empty())
        return "failed";
      if (!each.skipped.empty())
        return "skipped";
    }
  return {};
}

std::string number(double value) {
  std::array<char, 32> text{};
  auto digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : value >= 0.9995 ? 2 : 3;
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

/// Columns of an UTF-8 text on a terminal, for the characters that are used here.
size_t width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

using line = std::vector<std::string>; // a label, then one text a column

size_t rounds_of(const row_result& from) {
  size_t out = 0;
  for (auto& [name, samples] : from.cells)
    out = std::max(out, samples.size());
  return out;
}

/// Adds how much better than `base` each column is.
void add_ratios(std::vector<line>& to, const row_result& result, const std::vector<column>& shown,
                const std::string& name, const reference& base) {
  auto of_base = value_of(result, base.column, name);
  if (!of_base || of_base->least <= 0)
    return;
  const auto more = result.what->more_is_better;
  line medians{std::string{"    times better than "} + base.title};
  line best{"    best over best"};
  for (auto& each : shown) {
    auto value = value_of(result, each.name, name);
    if (!value || value->least <= 0) {
      medians.emplace_back();
      best.emplace_back();
      continue;
    }
    medians.push_back(
        number(more ? value->median / of_base->median : of_base->median / value->median));
    best.push_back(number(more ? value->most / of_base->most : of_base->least / value->least));
  }
  to.push_back(std::move(medians));
  if (rounds_of(result) > 1)
    to.push_back(std::move(best));
}

/// The lines of one row, without its title.
std::vector<line> lines_of(const row_result& result, const std::vector<column>& shown) {
  std::vector<line> out;
  auto names = value_names(result);
  if (names.empty())
    names.emplace_back("no value");
  for (auto& name : names) {
    line values{"  " + name};
    line spread{"    min..max"};
    for (auto& each : shown) {
      auto value = value_of(result, each.name, name);
      values.push_back(value ? number(value->median) : excuse_of(result, each.name));
      spread.push_back(value ? number(value->least) + ".." + number(value->most) : "");
    }
    out.push_back(std::move(values));
    if (name != names.front())
      continue;
    out.push_back(std::move(spread));
    for (auto& each : references)
      add_ratios(out, result, shown, name, each);
  }
  return out;
}

std::string machine() {
  utsname system{};
  ::uname(&system);
  std::string model;
  std::ifstream in{"/proc/cpuinfo"};
  for (std::string text; model.empty() && std::getline(in, text);)
    if (text.starts_with("model name"))
      model = text.substr(text.find(':') + 2) + ", ";
  return model + std::to_string(std::thread::hardware_concurrency()) + " processors, Linux " +
         system.release;
}

std::string load() {
  std::string out;
  std::getline(std::ifstream{"/proc/loadavg"}, out, ' ');
  return out;
}

std::vector<column> shown_columns(const std::vector<row_result>& results, const context& how) {
  auto out = columns(how);
  std::erase_if(out, [&](const column& each) {
    return std::none_of(results.begin(), results.end(),
                        [&](const row_result& r) { return r.cells.count(each.name) != 0; });
  });
  return out;
}

void print_notes(std::ostream& to, const std::vector<row_result>& results,
                 const std::vector<column>& shown, const context& how) {
  for (auto& each : shown)
    to << "  " << each.title << ": " << each.what << '\n';
  for (auto& each : columns(how))
    if (!each.absent.empty())
      to << "  left out: " << each.title << ": " << each.absent << '\n';
  std::set<std::string> said;
  auto say_once = [&](const std::string& title, const std::string& what) {
    if (!what.empty() && said.insert(title + what).second)
      to << "  " << title << ": " << what << '\n';
  };
  for (auto& result : results)
    for (auto& each : shown)
      if (auto found = result.cells.find(each.name); found != result.cells.end())
        for (auto& one : found->second)
          for (auto* text : {&one.failure, &one.skipped, &one.remark})
            say_once(result.what->title + ", " + each.title, *text);
}

} // namespace

void print_table(std::ostream& to, const std::vector<row_result>& results, const options& chosen) {
  auto shown = shown_columns(results, chosen.how);
  line head{""};
  for (auto& each : shown)
    head.push_back(each.title);
  std::vector<std::vector<line>> blocks;
  std::vector<size_t> widths(head.size());
  auto measure = [&](const line& texts) {
    for (size_t i = 0; i < texts.size(); ++i)
      widths[i] = std::max(widths[i], width(texts[i]));
  };
  measure(head);
  for (auto& result : results) {
    blocks.push_back(lines_of(result, shown));
    std::for_each(blocks.back().begin(), blocks.back().end(), measure);
  }
  auto print = [&](const line& texts) {
    to << texts[0];
    auto column_end = widths[0];
    auto written = width(texts[0]);
    for (size_t i = 1; i < texts.size(); ++i) {
      if (texts[i].empty()) {
        column_end += 2 + widths[i];
        continue;
      }
      column_end += 2 + widths[i];
      to << std::string(column_end - width(texts[i]) - written, ' ') << texts[i];
      written = column_end;
    }
    to << '\n';
  };
  print(head);
  for (size_t i = 0; i < results.size(); ++i) {
    auto& what = *results[i].what;
    to << what.title << (what.goal.empty() ? "" : "  (goal: " + what.goal + ")") << '\n';
    std::for_each(blocks[i].begin(), blocks[i].end(), print);
  }
  to << '\n'
     << machine() << ", load " << load() << "; medians of " << chosen.rounds
     << (chosen.rounds == 1 ? " round" : " rounds")
     << (chosen.how.quick ? ". --quick: the figures mean nothing" : "")
     << (interrupted() ? ". Interrupted: not all of them" : "") << '\n';
  print_notes(to, results, shown, chosen.how);
}

void print_json(std::ostream& to, const std::vector<row_result>& results, const options& chosen) {
  using json = nlohmann::ordered_json;
  auto table = json::array();
  for (auto& result : results) {
    auto cells = json::object();
    for (auto& [name, samples] : result.cells) {
      auto values = json::object();
      for (auto& value_name : value_names(result))
        if (auto value = value_of(result, name, value_name))
          values[value_name] = {{"median", value->median},
                                {"min", value->least},
                                {"max", value->most},
                                {"all", value->all}};
      auto notes = json::array();
      auto failures = json::array();
      for (auto& each : samples) {
        if (!each.failure.empty())
          failures.push_back(each.failure);
        for (auto* text : {&each.skipped, &each.remark})
          if (!text->empty())
            notes.push_back(*text);
      }
      cells[name] = {{"values", values}, {"failures", failures}, {"remarks", notes}};
    }
    table.push_back({{"name", result.what->name},
                     {"title", result.what->title},
                     {"goal", result.what->goal},
                     {"more_is_better", result.what->more_is_better},
                     {"cells", cells}});
  }
  to << json{{"machine", machine()},      {"load", load()},          {"device", chosen.how.device},
             {"quick", chosen.how.quick}, {"rounds", chosen.rounds}, {"rows", table}}
            .dump(2)
     << '\n';
}

bool complete(const std::vector<row_result>& results, const options& chosen) {
  for (auto& result : results)
    for (auto& [name, samples] : result.cells)
      if (chosen.how.quick || name.starts_with("troupe"))
        for (auto& each : samples)
          if (!each.failure.empty() || (each.values.empty() && each.skipped.empty()))
            return false;
  return true;
}

} // namespace bench
