// The guardian's own protocol, with requests that no runner would send.

#include "support.hpp"

#include "executor/guardian_process.hpp"
#include "executor/guardian_protocol.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <random>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

using namespace executor_test;
namespace protocol = troupe::cluster::guardian;

namespace {

// A guardian and the bare socket to it.
class bare_guardian {
public:
  bare_guardian() {
    auto found = find_guardian();
    REQUIRE(found.has_value());
    auto made = guardian_process::spawn(*found);
    REQUIRE(made.has_value());
    child_.emplace(std::move(*made));
    null_.reset(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    REQUIRE(null_);
  }

  // Sends `bytes` with `files`.
  void send(std::string_view bytes, std::vector<int> files = {}) {
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    std::vector<char> control(CMSG_SPACE(files.size() * sizeof(int)));
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!files.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      auto attached = CMSG_FIRSTHDR(&message);
      attached->cmsg_level = SOL_SOCKET;
      attached->cmsg_type = SCM_RIGHTS;
      attached->cmsg_len = CMSG_LEN(files.size() * sizeof(int));
      std::memcpy(CMSG_DATA(attached), files.data(), files.size() * sizeof(int));
    }
    REQUIRE(::sendmsg(child_->socket(), &message, MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
  }

  protocol::reply receive() {
    protocol::reply what;
    pollfd ready{child_->socket(), POLLIN, 0};
    REQUIRE(::poll(&ready, 1, static_cast<int>(std::chrono::milliseconds{deadline}.count())) == 1);
    REQUIRE(::recv(child_->socket(), &what, sizeof what, 0) == sizeof what);
    return what;
  }

  // Expects that the request just sent is refused as malformed.
  void expect_refusal() {
    auto what = receive();
    CHECK(what.kind == protocol::reply_kind::failed);
    CHECK(what.step == protocol::start_step::request);
    CHECK(what.error_number == EINVAL);
  }

  int null() const { return null_.get(); }

private:
  std::optional<guardian_process> child_;
  unique_fd null_;
};

std::string encode(const protocol::request_header& header, std::string_view body = {}) {
  std::string out(sizeof header, '\0');
  std::memcpy(out.data(), &header, sizeof header);
  return out.append(body);
}

protocol::request_header start_header(uint64_t id, uint32_t strings, uint32_t arguments,
                                      uint64_t length) {
  return {protocol::request_kind::start, 0, id, strings, arguments, length, 0};
}

protocol::request_header signal_header(int number, uint64_t id) {
  return {protocol::request_kind::signal, number, id, 0, 0, 0, 0};
}

protocol::request_header extension(uint64_t end_ns) {
  return {protocol::request_kind::extend, 0, 0, 0, 0, 0, end_ns};
}

unique_fd memory_file(std::string_view content, int seals) {
  unique_fd file{::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  REQUIRE(file);
  REQUIRE(::write(file.get(), content.data(), content.size()) ==
          static_cast<ssize_t>(content.size()));
  REQUIRE(::fcntl(file.get(), F_ADD_SEALS, seals) == 0);
  return file;
}

using namespace std::string_view_literals;

// Working directory, one argument, no environment.
constexpr auto good_body = "\0true\0"sv;

} // namespace

TEST_CASE("the guardian refuses malformed requests and goes on") {
  bare_guardian here;
  auto null = here.null();
  auto good = start_header(1, 2, 1, good_body.size());

  SUBCASE("too short for a header") {
    here.send("x");
  }
  SUBCASE("unknown kind") {
    auto header = good;
    header.kind = protocol::request_kind{77};
    here.send(encode(header, good_body), {null, null});
  }
  SUBCASE("no files") {
    here.send(encode(good, good_body));
  }
  SUBCASE("one file") {
    here.send(encode(good, good_body), {null});
  }
  SUBCASE("too many files") {
    here.send(encode(good, good_body), {null, null, null, null, null});
  }
  SUBCASE("a body shorter than told") {
    here.send(encode(start_header(1, 2, 1, good_body.size() + 1), good_body), {null, null});
  }
  SUBCASE("a body longer than told") {
    here.send(encode(start_header(1, 2, 1, good_body.size() - 1), good_body), {null, null});
  }
  SUBCASE("a body longer than any") {
    here.send(encode(start_header(1, 2, 1, UINT64_MAX)), {null, null, null});
  }
  SUBCASE("a message longer than any") {
    std::string long_body(protocol::max_inline_body + 1, '\0');
    here.send(encode(start_header(1, 2, 1, long_body.size()), long_body), {null, null});
  }
  SUBCASE("no body") {
    here.send(encode(start_header(1, 2, 1, 0)), {null, null});
  }
  SUBCASE("a last string without end") {
    here.send(encode(start_header(1, 2, 1, 5), "\0true"sv), {null, null});
  }
  SUBCASE("more strings told than there are") {
    here.send(encode(start_header(1, 3, 1, good_body.size()), good_body), {null, null});
  }
  SUBCASE("far more strings told than there are") {
    here.send(encode(start_header(1, UINT32_MAX, 1, good_body.size()), good_body), {null, null});
  }
  SUBCASE("fewer strings told than there are") {
    here.send(encode(start_header(1, 2, 1, 8), "\0true\0x\0"sv), {null, null});
  }
  SUBCASE("no program") {
    here.send(encode(start_header(1, 2, 0, good_body.size()), good_body), {null, null});
  }
  SUBCASE("more arguments than strings") {
    here.send(encode(start_header(1, 2, 9, good_body.size()), good_body), {null, null});
  }
  SUBCASE("a memory file that may still change") {
    auto file = memory_file(good_body, F_SEAL_SHRINK);
    here.send(encode(good), {null, null, file.get()});
  }
  SUBCASE("a memory file of another length") {
    auto file = memory_file(good_body, F_SEAL_SHRINK | F_SEAL_WRITE);
    here.send(encode(start_header(1, 2, 1, 4096)), {null, null, file.get()});
  }
  SUBCASE("a file that is no memory file") {
    here.send(encode(good), {null, null, null});
  }
  SUBCASE("signal 0") {
    here.send(encode(signal_header(0, 1)));
  }
  SUBCASE("a negative signal") {
    here.send(encode(signal_header(-9, 1)));
  }
  SUBCASE("a signal beyond the last") {
    here.send(encode(signal_header(65, 1)));
  }
  SUBCASE("a lease until no time") {
    here.send(encode(extension(0)));
  }
  SUBCASE("a lease until a time that no clock shows") {
    here.send(encode(extension(UINT64_MAX)));
  }
  SUBCASE("a lease with a body") {
    here.send(encode(extension(1), good_body));
  }
  here.expect_refusal();

  here.send(encode(signal_header(SIGTERM, 4711))); // no such task
  here.send(encode(start_header(2, 2, 1, good_body.size()), good_body), {null, null});
  auto started = here.receive();
  CHECK(started.kind == protocol::reply_kind::started);
  CHECK(started.id == 2);
  auto ended = here.receive();
  CHECK(ended.kind == protocol::reply_kind::ended);
  CHECK(ended.end == protocol::end_kind::exited);
  CHECK(ended.value == 0);
}

TEST_CASE("the guardian refuses a number that is taken") {
  bare_guardian here;
  auto body = "\0sleep\000600\0"sv;
  auto header = start_header(5, 3, 2, body.size());
  here.send(encode(header, body), {here.null(), here.null()});
  CHECK(here.receive().kind == protocol::reply_kind::started);
  here.send(encode(header, body), {here.null(), here.null()});
  auto refused = here.receive();
  CHECK(refused.kind == protocol::reply_kind::failed);
  CHECK(refused.error_number == EEXIST);
}

TEST_CASE("random requests do the guardian no harm") {
  bare_guardian here;
  std::mt19937 random{11};
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(1 + random() % 80, '\0');
    for (auto& byte : bytes)
      byte = static_cast<char>(random());
    // Half of them with the kind of a start, which is where the work is.
    if (i % 2 == 0 && bytes.size() >= sizeof(uint32_t))
      bytes.replace(0, sizeof(uint32_t), "\1\0\0\0"sv);
    here.send(bytes, {here.null(), here.null()});
    here.expect_refusal();
  }
}

TEST_CASE("the guardian does not run without its socket") {
  auto found = find_guardian();
  REQUIRE(found.has_value());
  for (auto argument : {"", " 3", " 0", " x", " 99"}) {
    auto status = std::system((found->string() + argument + " 2>/dev/null").c_str());
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 2);
  }
}
