#include "config_file.hpp"

#include "config_table.hpp"
#include "troupe/framework/host.hpp"
#include "troupe/framework/suggest.hpp"

#include <algorithm>
#include <toml++/toml.h>

namespace troupe::detail {

namespace {

const config_key* find_key(std::string_view section, std::string_view key) {
  auto fits = [&](const config_key& known) { return known.section == section && known.key == key; };
  for (auto keys : {config_keys(), client_config_keys()})
    if (auto found = std::find_if(keys.begin(), keys.end(), fits); found != keys.end())
      return &*found;
  return nullptr;
}

const std::vector<std::string>& section_names() {
  static const auto names = [] {
    std::vector<std::string> all;
    for (auto keys : {config_keys(), client_config_keys()})
      for (auto& known : keys)
        if (all.empty() || all.back() != known.section)
          all.emplace_back(known.section);
    return all;
  }();
  return names;
}

bool is_section(std::string_view name) {
  auto& names = section_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string_view expected_form(value_kind kind) {
  switch (kind) {
  case value_kind::text:
    return "a string";
  case value_kind::list:
    return "an array of strings";
  case value_kind::count:
    return "an integer";
  case value_kind::size:
    return "a size: an integer (bytes) or a string such as \"8GiB\"";
  case value_kind::duration:
    return "a duration: a string such as \"500ms\"";
  }
  return "a value";
}

std::string found_form(const toml::node& value) {
  switch (value.type()) {
  case toml::node_type::table:
    return "a table";
  case toml::node_type::array:
    return value.as_array()->is_homogeneous<std::string>() ? "an array of strings"
                                                           : "an array of other values";
  case toml::node_type::string:
    return "the string \"" + value.as_string()->get() + '"';
  case toml::node_type::integer:
    return "the integer " + std::to_string(value.as_integer()->get());
  case toml::node_type::floating_point:
    return "a floating-point number";
  case toml::node_type::boolean:
    return value.as_boolean()->get() ? "the boolean true" : "the boolean false";
  default:
    return "a date or time";
  }
}

/// The text that `apply` reads, or nothing when the TOML type does not fit `kind`.
std::optional<std::string> text_of(const toml::node& value, value_kind kind) {
  if (auto* text = value.as_string(); text && kind != value_kind::count && kind != value_kind::list)
    return text->get();
  if (auto* number = value.as_integer();
      number && (kind == value_kind::count || kind == value_kind::size))
    return std::to_string(number->get());
  auto* list = value.as_array();
  if (!list || kind != value_kind::list)
    return std::nullopt;
  std::string joined;
  for (auto& element : *list) {
    auto* text = element.as_string();
    if (!text)
      return std::nullopt;
    joined += (joined.empty() ? "" : ",") + text->get();
  }
  return joined;
}

class file_reader {
public:
  explicit file_reader(const std::filesystem::path& file) : file_(file.string()) {}

  file_contents read() {
    auto text = read_text_file(file_);
    if (!text) {
      contents_.problems.push_back({0, text.error().text()});
      return std::move(contents_);
    }
    // Debian's toml++ is built to throw.
    try {
      for (auto&& [name, value] : toml::parse(std::string_view{*text}, std::string_view{file_}))
        read_section(name.str(), value);
    } catch (const toml::parse_error& e) {
      problem(e.source(), std::string{e.description()});
    }
    return std::move(contents_);
  }

private:
  void read_section(std::string_view name, const toml::node& value) {
    auto* table = value.as_table();
    if (is_section(name)) {
      if (!table)
        return problem(value.source(), '\'' + std::string{name} + "' is a section: write [" +
                                           std::string{name} + "] and its keys below");
      for (auto&& [key, element] : *table)
        read_value(name, key.str(), element);
    } else if (table) {
      problem(value.source(),
              "unknown section '" + std::string{name} + '\'' + did_you_mean(name, section_names()));
    } else {
      problem(value.source(), unknown_key(name));
    }
  }

  void read_value(std::string_view section, std::string_view key, const toml::node& value) {
    auto name = std::string{section} + '.' + std::string{key};
    auto* known = find_key(section, key);
    if (!known)
      return problem(value.source(), unknown_key(name));
    auto text = text_of(value, known->kind);
    if (!text)
      return problem(value.source(), name + " must be " + std::string{expected_form(known->kind)} +
                                         ", found " + found_form(value));
    contents_.settings.push_back(
        {value.source().begin.line, {name, std::move(*text), origin(value.source())}});
  }

  std::string origin(const toml::source_region& where) const {
    return file_ + ':' + std::to_string(where.begin.line);
  }

  void problem(const toml::source_region& where, const std::string& text) {
    contents_.problems.push_back({where.begin.line, origin(where) + ": " + text});
  }

  std::string file_;
  file_contents contents_;
};

} // namespace

file_contents read_config_file(const std::filesystem::path& file) {
  return file_reader{file}.read();
}

} // namespace troupe::detail
