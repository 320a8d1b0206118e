// What `troupe` does without a controller.
#include "program.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fstream>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <unistd.h>

using namespace cli_test;

namespace {

bool has(const std::string& text, std::string_view what) {
  INFO(text);
  return text.find(what) != std::string::npos;
}

/// A port of this machine at which nobody listens, kept from others.
class deaf_port {
public:
  deaf_port() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof where;
    auto address = reinterpret_cast<sockaddr*>(&where);
    REQUIRE(::bind(socket_, address, length) == 0);
    REQUIRE(::getsockname(socket_, address, &length) == 0);
    port_ = ntohs(where.sin_port);
  }
  ~deaf_port() { ::close(socket_); }
  deaf_port(const deaf_port&) = delete;
  deaf_port& operator=(const deaf_port&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

private:
  int socket_;
  uint16_t port_ = 0;
};

} // namespace

TEST_SUITE_BEGIN("local");

TEST_CASE("wrong usage ends with 2 and a hint on standard error") {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"nods"}, {"jobs", "--bogus"}, {"job"}, {"submit"}}) {
    auto how = troupe(words);
    CHECK(how.code == 2);
    CHECK(how.out.empty());
    CHECK(how.err.starts_with("troupe: "));
    CHECK(has(how.err, "ee `troupe "));
  }
  CHECK(has(troupe({"nods"}).err, "did you mean 'nodes'?"));
}

TEST_CASE("help and version are on standard output") {
  auto help = troupe({"--help"});
  CHECK(help.code == 0);
  CHECK(help.err.empty());
  CHECK(has(help.out, "submit"));
  auto version = troupe({"version"});
  CHECK(version.code == 0);
  CHECK(version.out.starts_with("troupe "));
  CHECK(nlohmann::json::parse(troupe({"version", "--json"}).out).contains("version"));
}

TEST_CASE("without a controller every command that needs one ends with 3 and says what to do") {
  deaf_port port;
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"nodes"}, {"wait", "1"}, {"submit", "--", "true"}, {"output", "1"}, {"shutdown"}}) {
    auto how = troupe(words, {.environment = {"TROUPE_CONTROLLER=" + port.address()}});
    CAPTURE(how.err);
    CHECK(how.code == 3);
    CHECK(how.out.empty());
    CHECK(how.err.starts_with("troupe: "));
  }
}

TEST_CASE("a wrong address, file or device is named") {
  auto how = troupe({"--controller", "nowhere:99999", "nodes"});
  CHECK(how.code == 2);
  CHECK(has(how.err, "nowhere:99999"));

  how = troupe({"--config", "/nonexistent.toml", "nodes"});
  CHECK(how.code == 2);
  CHECK(has(how.err, "/nonexistent.toml"));

  auto file = scratch() / "wrong.toml";
  std::ofstream{file} << "[client]\ncontroler = \"x\"\n";
  how = troupe({"nodes", "--config", file.string()});
  CHECK(how.code == 2);
  CHECK(has(how.err, "wrong.toml:2"));
  CHECK(has(how.err, "controller"));

  how = troupe({"--device", "verbs:none9", "nodes"});
  CHECK(how.code == 3);
  CHECK(has(how.err, "none9"));
}

TEST_CASE("commands from standard input are run until one fails") {
  auto how = troupe({}, {.input = "version\n\n# a comment\nnods\nversion\n"});
  CHECK(how.code == 2);
  CHECK(how.out.find("troupe ") == 0);
  CHECK(how.out.rfind("troupe ") == 0); // the second was not run
  CHECK(has(how.err, "unknown command 'nods'"));
  CHECK(troupe({}, {.input = "version"}).code == 0);
  CHECK(troupe({}, {.input = ""}).code == 0);
  CHECK(troupe({}, {.input = "exit\nnods\n"}).code == 0);
  CHECK(has(troupe({}, {.input = "job 'x"}).err, "is not closed"));
}

TEST_CASE("doctor looks at this machine, with or without a usable device") {
  auto how = troupe({"doctor", "--json"});
  auto seen = nlohmann::json::parse(how.out);
  CHECK(how.code == (seen["usable"].get<bool>() ? 0 : 1));
  REQUIRE(seen["checks"].size() >= 6);
  for (auto& check : seen["checks"]) {
    CHECK(std::string{"ok warning problem"}.find(check["level"].get<std::string>()) !=
          std::string::npos);
    CHECK_FALSE(check["text"].get<std::string>().empty());
  }
  CHECK(has(troupe({"doctor"}).out, "memlock"));

  how = troupe({"doctor", "--device", "verbs:none9"});
  CHECK(how.code == 1);
  CHECK(has(how.out, "problem"));
  CHECK(has(how.out, "none9"));
  CHECK(troupe({"doctor"}, {.environment = {"TROUPE_DEVICE=verbs:none9"}}).code == 1);
}

TEST_CASE("standard output that cannot be written is an error, one that nobody reads is none") {
  auto full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  REQUIRE(full >= 0);
  auto how = troupe({"version"}, {.output = full});
  ::close(full);
  CHECK(how.code == 1);
  CHECK(has(how.err, "No space left"));

  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  ::close(ends[0]);
  how = troupe({"version"}, {.output = ends[1]});
  ::close(ends[1]);
  CHECK(how.code == 0);
  CHECK(how.err.empty());
}

TEST_SUITE_END();
