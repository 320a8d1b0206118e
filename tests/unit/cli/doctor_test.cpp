#include "doctor.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace troupe;
using namespace troupe::cli;

namespace {

constexpr uint64_t mebibyte = 1024 * 1024;

bool mentions(const std::string& text, std::string_view what) {
  return text.find(what) != std::string::npos;
}

} // namespace

TEST_CASE("locked memory matters only where there is an adapter") {
  CHECK(judge_memlock(8 * mebibyte, false).how == grade::ok);
  auto low = judge_memlock(8 * mebibyte, true);
  CHECK(low.how == grade::warning);
  CHECK(mentions(low.text, "8MiB"));
  CHECK(mentions(low.remedy, "ulimit -l unlimited"));
  CHECK(judge_memlock(64 * mebibyte, true).how == grade::ok);
  CHECK(judge_memlock(std::nullopt, true).how == grade::ok);
}

TEST_CASE("a key is needed where an adapter is") {
  CHECK(judge_key("", {}, false).how == grade::ok);
  auto missing = judge_key("", {}, true);
  CHECK(missing.how == grade::warning);
  CHECK(mentions(missing.remedy, "trouped --new-key"));
  CHECK(judge_key("/etc/troupe/key", {}, true) ==
        finding{grade::ok, "key", "/etc/troupe/key; only its owner may read it", ""});
  auto open = judge_key("/etc/troupe/key", {errc::permission_denied, "chmod 600 it"}, false);
  CHECK(open.how == grade::problem);
  CHECK(open.text == "chmod 600 it");
}

TEST_CASE("few open files bite") {
  CHECK(judge_open_files(1024).how == grade::ok);
  CHECK(judge_open_files(1023).how == grade::warning);
  CHECK(judge_open_files(64).how == grade::problem);
  CHECK(judge_open_files(std::nullopt).how == grade::ok);
}

TEST_CASE("reading a peer's memory is dear but not needed") {
  CHECK(judge_peer_reads({}, 1).how == grade::ok);
  error forbidden{errc::permission_denied, "process_vm_readv: Operation not permitted"};
  CHECK(judge_peer_reads(forbidden, 1).how == grade::warning);
  CHECK(mentions(judge_peer_reads(forbidden, 1).remedy, "kernel.yama.ptrace_scope=0"));
  CHECK(mentions(judge_peer_reads(forbidden, 0).remedy, "SYS_PTRACE"));
  CHECK(mentions(judge_peer_reads(forbidden, std::nullopt).remedy, "SYS_PTRACE"));
}

TEST_CASE("the spool needs room and must be writable") {
  CHECK(judge_spool("/s", 2048 * mebibyte, {}).how == grade::ok);
  CHECK(judge_spool("/s", 2 * mebibyte, {}).how == grade::warning);
  CHECK(judge_spool("/s", 0, {errc::permission_denied, "/s: no"}).how == grade::problem);
}

TEST_CASE("a device is usable when it was opened and its memory worked") {
  device_trial trial;
  trial.asked = "auto";
  trial.problem = {errc::no_such_device, "no device 'auto'"};
  CHECK_FALSE(trial.usable());
  CHECK(judge_device(trial).how == grade::problem);
  trial.name = "rxe0";
  trial.problem = {errc::limit_too_low, "ibv_reg_mr of 64MiB: Cannot allocate memory"};
  CHECK_FALSE(trial.usable());
  CHECK(mentions(judge_device(trial).text, "rxe0 does not work: ibv_reg_mr"));
  trial.problem = {};
  trial.reason = "the first usable adapter";
  CHECK(trial.usable());
  CHECK(mentions(judge_device(trial).text, "rxe0 would be used (the first usable adapter)"));
}

TEST_CASE("a configuration that is wrong is a problem") {
  CHECK(judge_config("", {}).how == grade::ok);
  CHECK(judge_config("t.toml", {}).text == "t.toml");
  auto wrong = judge_config("t.toml", {errc::invalid_argument, "t.toml:3: unknown key"});
  CHECK(wrong.how == grade::problem);
  CHECK(wrong.text == "t.toml:3: unknown key");
}

TEST_CASE("the report names every device and every remedy") {
  report seen;
  seen.devices = {{"verbs:rxe0", false, "10.0.0.1", "its port is down"},
                  {"soft", true, "", "shared memory"}};
  seen.trial = {"auto", "soft", "no usable adapter", {}};
  seen.findings = {judge_device(seen.trial), judge_open_files(64)};
  auto text = report_text(seen, false);
  CHECK(mentions(text, "  verbs:rxe0 at 10.0.0.1: its port is down (not usable)\n"));
  CHECK(mentions(text, "  soft: shared memory\n"));
  CHECK(mentions(text, "problem  open files"));
  CHECK(mentions(text, "mend: `ulimit -n 65536`"));
  CHECK_FALSE(mentions(text, "\x1b"));
  CHECK(mentions(report_text(seen, true), "\x1b[31mproblem"));

  auto read = nlohmann::json::parse(report_json(seen));
  CHECK(read["usable"] == true);
  CHECK(read["devices"][0]["name"] == "verbs:rxe0");
  CHECK(read["devices"][0]["usable"] == false);
  CHECK(read["device"]["name"] == "soft");
  CHECK(read["checks"][1]["level"] == "problem");
  CHECK(read["checks"][1]["remedy"] != "");
}
