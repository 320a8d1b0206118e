#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <set>
#include <troupe/framework/config.hpp>
#include <troupe/framework/host.hpp>
#include <troupe/transport/shared_key.hpp>
#include <unistd.h>

using namespace troupe;
using namespace std::chrono_literals;
using transport::endpoint;

namespace {

/// A directory of its own for each test, removed at the end. Errors name "cluster.toml" in it.
class scratch {
public:
  scratch() {
    auto pattern = (std::filesystem::temp_directory_path() / "troupe-config-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~scratch() { std::filesystem::remove_all(path_); }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;

  std::filesystem::path write(std::string_view text) const {
    auto file = path_ / "cluster.toml";
    std::ofstream{file} << text;
    return file;
  }

  /// The error of loading `text`, with the directory taken out.
  std::string problems(std::string_view text, std::span<const setting> flags = {}) const {
    auto loaded = load_node_config(write(text), flags);
    REQUIRE_FALSE(loaded);
    auto lines = loaded.error().text();
    auto prefix = path_.string() + '/';
    for (auto at = lines.find(prefix); at != std::string::npos; at = lines.find(prefix))
      lines.erase(at, prefix.size());
    return lines;
  }

  const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
};

} // namespace

TEST_CASE("without a file the defaults are this machine's") {
  auto loaded = load_node_config(std::nullopt, {});
  REQUIRE(loaded);
  CHECK_FALSE(loaded->node.id.empty());
  CHECK(loaded->node.roles == node_roles{true, true});
  CHECK(loaded->node.listen == endpoint{"127.0.0.1", 4747});
  CHECK_FALSE(loaded->node.controller);
  CHECK(loaded->transport.device == "auto");
  CHECK(loaded->transport.eager_threshold == 32768);
  CHECK(loaded->worker.cpus == available_cpus());
  CHECK(loaded->worker.memory > 16u << 20);
  CHECK(loaded->worker.slots == 64);
  CHECK(loaded->membership.heartbeat == 500ms);
  CHECK(loaded->membership.dead_after == 3s);
  CHECK(loaded->membership.lease == 2500ms);
  CHECK(loaded->membership.rejoin_for == 30s);
  CHECK(loaded->monitor.interval == 500ms);
  CHECK(loaded->scheduler.retries == 2);
  CHECK(loaded->log.level == "warning");
  CHECK(loaded->origins.empty());
}

TEST_CASE("a file sets every key, and flags win over it") {
  scratch dir;
  auto file = dir.write("[node]\n"
                        "id = \"n-1.a_b\"\n"
                        "roles = [\"worker\"]\n"
                        "listen = \"[::1]:0\"\n"
                        "controller = \"head\"\n"
                        "[transport]\n"
                        "device = \"verbs:rxe0\"\n"
                        "eager_threshold = \"16KiB\"\n"
                        "[worker]\n"
                        "cpus = 3\n"
                        "memory = 1073741824\n"
                        "slots = 256\n"
                        "spool = \"" +
                        dir.path().string() +
                        "\"\n"
                        "[membership]\n"
                        "heartbeat = \"100ms\"\n"
                        "suspect_after = \"0.3s\"\n"
                        "dead_after = \"1s\"\n"
                        "lease = \"2m\"\n"
                        "rejoin_for = \"0\"\n"
                        "[monitor]\n"
                        "interval = \"1m\"\n"
                        "[scheduler]\n"
                        "retries = 0\n"
                        "[log]\n"
                        "level = \"debug\"\n"
                        "[client]\n"
                        "controller = \"other:1\"\n");
  std::vector<setting> flags{{"worker.cpus", "5", "--worker-cpus"},
                             {"worker.memory", "2GiB", "--worker-memory"}};
  auto loaded = load_node_config(file, flags);
  REQUIRE_MESSAGE(loaded, loaded.error().text());
  CHECK(loaded->node.id == "n-1.a_b");
  CHECK(loaded->node.roles == node_roles{false, true});
  CHECK(loaded->node.listen == endpoint{"::1", 0});
  CHECK(loaded->node.controller == endpoint{"head", 4747});
  CHECK(loaded->transport.device == "verbs:rxe0");
  CHECK(loaded->transport.eager_threshold == 16384);
  CHECK(loaded->worker.cpus == 5);
  CHECK(loaded->worker.memory == 2ull << 30);
  CHECK(loaded->worker.slots == 256);
  CHECK(loaded->worker.spool == dir.path());
  CHECK(loaded->membership.heartbeat == 100ms);
  CHECK(loaded->membership.suspect_after == 300ms);
  CHECK(loaded->membership.dead_after == 1s);
  CHECK(loaded->membership.lease == 2min);
  CHECK(loaded->membership.rejoin_for == 0ms);
  CHECK(loaded->monitor.interval == 60s);
  CHECK(loaded->scheduler.retries == 0);
  CHECK(loaded->log.level == "debug");
  CHECK(loaded->origins.at("worker.cpus") == "--worker-cpus");
  CHECK(loaded->origins.at("worker.slots") == file.string() + ":12");

  auto client = load_client_config(file, {});
  REQUIRE(client);
  CHECK(client->client.controller == endpoint{"other", 1});
}

TEST_CASE("an unknown key is named with its line and the nearest one") {
  scratch dir;
  CHECK(dir.problems("\n\n\n\n\n[worker]\ncpu = 4\n") ==
        "cluster.toml:7: unknown key 'worker.cpu'; did you mean 'worker.cpus'?");
  CHECK(dir.problems("[node]\ncpus = 4\n") ==
        "cluster.toml:2: unknown key 'node.cpus'; did you mean 'worker.cpus'?");
  CHECK(dir.problems("id = \"a\"\n") ==
        "cluster.toml:1: unknown key 'id'; did you mean 'node.id'?");
  CHECK(dir.problems("[wroker]\ncpus = 4\n") ==
        "cluster.toml:1: unknown section 'wroker'; did you mean 'worker'?");
  CHECK(dir.problems("[node]\nfrobnicate = 1\n") ==
        "cluster.toml:2: unknown key 'node.frobnicate'");
  CHECK(dir.problems("node = 1\n") ==
        "cluster.toml:1: 'node' is a section: write [node] and its keys below");
}

TEST_CASE("a wrong type says what is expected and what was found") {
  scratch dir;
  CHECK(dir.problems("[worker]\ncpus = \"four\"\n") ==
        "cluster.toml:2: worker.cpus must be an integer, found the string \"four\"");
  CHECK(dir.problems("[node]\nroles = \"worker\"\n") ==
        "cluster.toml:2: node.roles must be an array of strings, found the string \"worker\"");
  CHECK(dir.problems("[node]\nroles = [1]\n") ==
        "cluster.toml:2: node.roles must be an array of strings, found an array of other values");
  CHECK(
      dir.problems("[membership]\nheartbeat = 500\n") ==
      "cluster.toml:2: membership.heartbeat must be a duration: a string such as \"500ms\", found "
      "the integer 500");
  CHECK(dir.problems("[worker]\nmemory = true\n") ==
        "cluster.toml:2: worker.memory must be a size: an integer (bytes) or a string such as "
        "\"8GiB\", found the boolean true");
  CHECK(dir.problems("[node]\nid = 1979-05-27\n") ==
        "cluster.toml:2: node.id must be a string, found a date or time");
}

TEST_CASE("a value out of range names the range") {
  scratch dir;
  CHECK(dir.problems("[worker]\nslots = 257\n") ==
        "cluster.toml:2: worker.slots: 257 is out of range (1 to 256)");
  CHECK(dir.problems("[worker]\nslots = -1\n") ==
        "cluster.toml:2: worker.slots: -1 is out of range (1 to 256)");
  CHECK(dir.problems("[worker]\nmemory = \"1KiB\"\n") ==
        "cluster.toml:2: worker.memory: 1KiB is out of range (1MiB to 1024TiB)");
  CHECK(dir.problems("[monitor]\ninterval = \"1ms\"\n") ==
        "cluster.toml:2: monitor.interval: 1ms is out of range (10ms to 1h0m)");
  CHECK(dir.problems("[monitor]\ninterval = \"soon\"\n") ==
        "cluster.toml:2: monitor.interval: 'soon' is not a duration such as 500ms, 3s or 1h30m");
  CHECK(dir.problems("[node]\nid = \"\"\n") ==
        "cluster.toml:2: node.id: '': an id has 1 to 63 characters out of A-Z a-z 0-9 . _ -");
  CHECK(dir.problems("[log]\nlevel = \"warnin\"\n") ==
        "cluster.toml:2: log.level: 'warnin': a level is trace, debug, info, warning, error, "
        "critical or off; did you mean 'warning'?");
  CHECK(dir.problems("[transport]\ndevice = \"verbs:\"\n")
            .starts_with("cluster.toml:2: transport.device: 'verbs:': a device is auto"));
  CHECK(
      dir.problems("[node]\nroles = [\"controler\"]\n").ends_with("; did you mean 'controller'?"));
  CHECK(dir.problems("[node]\nroles = []\n").find("a node needs a role") != std::string::npos);
  CHECK(dir.problems("[node]\nlisten = \"a:b:c\"\n").find("node.listen") != std::string::npos);
  CHECK(dir.problems("[node]\ncontroller = \"head:0\"\n").find("not 0") != std::string::npos);
  CHECK(dir.problems("[worker]\nspool = \"here\"\n").find("absolute") != std::string::npos);
}

TEST_CASE("all errors of a file and of the flags are reported, in order") {
  scratch dir;
  std::vector<setting> flags{{"worker.slots", "many", "--worker-slots"},
                             {"worker.slot", "1", "--worker-slot"}};
  CHECK(dir.problems("[worker]\n"
                     "slots = 0\n"
                     "cpus = 1.5\n"
                     "memry = \"1GiB\"\n"
                     "[log]\n"
                     "level = 1\n"
                     "[client]\n"
                     "controler = \"x\"\n",
                     flags) ==
        "cluster.toml:2: worker.slots: 0 is out of range (1 to 256)\n"
        "cluster.toml:3: worker.cpus must be an integer, found a floating-point number\n"
        "cluster.toml:4: unknown key 'worker.memry'; did you mean 'worker.memory'?\n"
        "cluster.toml:6: log.level must be a string, found the integer 1\n"
        "cluster.toml:8: unknown key 'client.controler'; did you mean 'client.controller'?\n"
        "--worker-slots: worker.slots: 'many' is not an integer\n"
        "--worker-slot: unknown key 'worker.slot'; did you mean 'worker.slots'?");
}

TEST_CASE("a file that cannot be read or parsed says so") {
  scratch dir;
  CHECK(dir.problems("[worker]\ncpus = = 4\n").starts_with("cluster.toml:2: "));
  CHECK(dir.problems("[worker]\ncpus = 1\ncpus = 2\n").starts_with("cluster.toml:3: "));
  auto missing = load_node_config(dir.path() / "none.toml", {});
  REQUIRE_FALSE(missing);
  CHECK(missing.error().text() ==
        "cannot read " + dir.path().string() + "/none.toml: No such file or directory");
  auto directory = load_node_config(dir.path(), {});
  REQUIRE_FALSE(directory);
  CHECK(directory.error().text() == "cannot read " + dir.path().string() + ": it is a directory");
}

TEST_CASE("keys that contradict each other are refused, with where they stand") {
  scratch dir;
  CHECK(dir.problems("[membership]\ndead_after = \"1s\"\n") ==
        "cluster.toml:2: membership.dead_after (1s) must be longer than membership.suspect_after "
        "(1.5s)");
  CHECK(dir.problems("[membership]\nheartbeat = \"1.9s\"\n") ==
        "membership.suspect_after (1.5s) must be longer than membership.heartbeat (1.9s)");
  CHECK(dir.problems("[membership]\nlease = \"1s\"\n") ==
        "cluster.toml:2: membership.lease (1s) must be longer than membership.heartbeat and "
        "monitor.interval together (1s), after which it is renewed");
  CHECK(dir.problems("[node]\nroles = [\"worker\"]\n")
            .starts_with("node.controller is missing: a node that is only a worker needs"));
  CHECK(dir.problems("[node]\ncontroller = \"other:1\"\n")
            .starts_with("cluster.toml:2: node.controller (other:1) names another node"));
  CHECK(dir.problems("[worker]\nspool = \"/no/such/place\"\n") ==
        "cluster.toml:2: worker.spool (/no/such/place) is not a directory");
  CHECK(load_node_config(dir.write("[node]\ncontroller = \"127.0.0.1\"\n"), {}));
  CHECK(load_node_config(
      dir.write("[node]\nroles = [\"controller\"]\n[worker]\nspool = \"/no/such/place\"\n"), {}));
}

TEST_CASE("without a key a controller listens where only this machine connects") {
  scratch dir;
  for (auto open : {"10.0.0.1:4747", "0.0.0.0:4747", "[::]:4747"}) {
    auto text = dir.problems("[node]\nlisten = \"" + std::string{open} + "\"\n");
    CHECK(
        text.starts_with("cluster.toml:2: node.listen (" + std::string{open} + ") is reached by"));
    CHECK(text.find("trouped --new-key") != std::string::npos);
  }
  for (auto closed : {"127.0.0.1:4747", "[::1]:4747", ":4747", "localhost:4747"})
    CHECK(load_node_config(dir.write("[node]\nlisten = \"" + std::string{closed} + "\"\n"), {}));
  auto key = (dir.path() / "key").string();
  auto with_key = "[node]\nlisten = \"10.0.0.1:4747\"\n[cluster]\nkey_file = \"" + key + "\"\n";
  CHECK(dir.problems(with_key).starts_with(
      "cluster.toml:4: cluster.key_file cannot be used: reading the key file key: No such file"));
  REQUIRE(transport::create_key_file(key));
  auto loaded = load_node_config(dir.write(with_key), {});
  REQUIRE(loaded);
  CHECK(loaded->cluster.key_file == key);
  std::filesystem::permissions(key, std::filesystem::perms::group_read,
                               std::filesystem::perm_options::add);
  CHECK(dir.problems(with_key).find("chmod 600 ") != std::string::npos);
  // A worker listens nowhere.
  CHECK(load_node_config(
      dir.write(
          "[node]\nroles = [\"worker\"]\ncontroller = \"10.0.0.1\"\nlisten = \"0.0.0.0:1\"\n"),
      {}));
}

TEST_CASE("the table of keys is complete and agrees with the defaults") {
  std::set<std::string> flags;
  for (auto& key : config_keys()) {
    CAPTURE(key.name());
    CHECK(flags.insert(key.flag_name()).second);
    CHECK_FALSE(key.help.empty());
    CHECK_FALSE(key.range.empty());
    CHECK_FALSE(key.fallback.empty());
  }
  CHECK(flags.size() == 19);
  CHECK(flags.contains("--membership-dead-after"));
  // What the table says about a default is what a node does by default.
  auto config = default_node_config();
  config.node.roles = {false, false};
  config.transport = {"", 0};
  config.worker.slots = 0;
  config.membership = {};
  config.membership.heartbeat = config.membership.dead_after = 0ms;
  config.scheduler.retries = 99;
  for (auto name : {"node.roles", "transport.device", "transport.eager_threshold", "worker.slots",
                    "membership.heartbeat", "membership.dead_after", "scheduler.retries"})
    for (auto& key : config_keys())
      if (key.name() == name)
        CHECK(apply(config, name, key.fallback, "default"));
  node_config fresh;
  CHECK(config.node.roles == fresh.node.roles);
  CHECK(config.transport.device == fresh.transport.device);
  CHECK(config.transport.eager_threshold == fresh.transport.eager_threshold);
  CHECK(config.worker.slots == fresh.worker.slots);
  CHECK(config.membership.heartbeat == fresh.membership.heartbeat);
  CHECK(config.membership.dead_after == fresh.membership.dead_after);
  CHECK(config.scheduler.retries == fresh.scheduler.retries);
}

TEST_CASE("a value that is refused changes nothing") {
  auto config = default_node_config();
  auto refused = apply(config, "worker.slots", "0", "--worker-slots");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == errc::invalid_argument);
  CHECK(config.worker.slots == 64);
  CHECK(config.origins.empty());
  CHECK(apply(config, "worker.slot", "1", "here").error().code() == errc::not_found);
  for (auto text : {"", "-", "1x", "0x10", " 1", "1 "})
    CHECK_FALSE(apply(config, "worker.slots", text, "here"));
  CHECK_FALSE(apply(config, "worker.slots", "99999999999999999999999", "here"));
  CHECK(apply(config, "scheduler.retries", "-0", "here"));
}

TEST_CASE("the command line program has its own key and files") {
  client_config config;
  REQUIRE(apply(config, "client.controller", "head:7", "TROUPE_CONTROLLER"));
  CHECK(config.client.controller == endpoint{"head", 7});
  auto wrong = apply(config, "client.controller", "a b", "TROUPE_CONTROLLER");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().text().starts_with("TROUPE_CONTROLLER: client.controller: 'a b'"));
  CHECK(client_config_keys().size() == 2);
  REQUIRE(apply(config, "cluster.key_file", "/etc/troupe/key", "--key-file"));
  CHECK(config.cluster.key_file == "/etc/troupe/key");
  ::setenv("XDG_CONFIG_HOME", "/x", 1);
  auto files = default_config_files();
  REQUIRE(files.size() == 2);
  CHECK(files[0] == "/x/troupe/troupe.toml");
  CHECK(files[1] == "/etc/troupe/troupe.toml");
  ::unsetenv("XDG_CONFIG_HOME");
}

TEST_CASE("meminfo is read with its labels") {
  auto figures = parse_meminfo("MemTotal:       16 kB\nMemFree: 1 kB\nMemAvailable:    8 kB\n");
  REQUIRE(figures);
  CHECK(figures->total == 16384);
  CHECK(figures->available == 8192);
  CHECK_FALSE(parse_meminfo(""));
  CHECK_FALSE(parse_meminfo("MemTotal: 16 kB\n"));
  CHECK_FALSE(parse_meminfo("MemTotal: 16 MB\nMemAvailable: 8 kB\n"));
  CHECK_FALSE(parse_meminfo("MemTotal: x kB\nMemAvailable: 8 kB\n"));
  CHECK_FALSE(parse_meminfo("MemTotal: 99999999999999999999 kB\nMemAvailable: 8 kB\n"));
}
