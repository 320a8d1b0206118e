#include "sample.hpp"

#include <nlohmann/json.hpp>

namespace bench {

sample sample::failed(std::string why) {
  sample out;
  out.failure = std::move(why);
  return out;
}

sample sample::skip(std::string why) {
  sample out;
  out.skipped = std::move(why);
  return out;
}

std::string sample::to_line() const {
  auto named = nlohmann::ordered_json::object();
  for (auto& [name, value] : values)
    named[name] = value;
  return nlohmann::ordered_json{
      {"values", named}, {"remark", remark}, {"failure", failure}, {"skipped", skipped}}
      .dump();
}

sample sample::from_line(const std::string& line) {
  auto parsed = nlohmann::ordered_json::parse(line);
  sample out;
  for (auto& [name, value] : parsed.at("values").items())
    out.set(name, value.get<double>());
  out.remark = parsed.at("remark").get<std::string>();
  out.failure = parsed.at("failure").get<std::string>();
  out.skipped = parsed.at("skipped").get<std::string>();
  return out;
}

} // namespace bench
