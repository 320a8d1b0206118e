// Who may join a cluster and give it orders: those who have its key.
#include "cluster.hpp"
#include "subject.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>

namespace cluster_test {

namespace {

std::string new_key(const cluster& c, const std::string& name) {
  auto file = (c.scratch() / name).string();
  auto how = process{c.launch({TROUPED_PROGRAM, "--new-key", file})}.wait();
  INFO(how.err);
  REQUIRE(how.code == 0);
  CHECK(has(how.out, file));
  struct stat about {};
  REQUIRE(::stat(file.c_str(), &about) == 0);
  CHECK((about.st_mode & 07777) == 0600);
  return file;
}

} // namespace

TEST_SUITE_BEGIN("more");

TEST_CASE("whoever has the key joins and gives orders, and nobody else") {
  cluster c;
  auto key = new_key(c, "cluster.key");
  auto other = new_key(c, "other.key");
  auto& head = c.start_controller({"--cluster-key-file", key});
  auto& worker = c.start_worker("w1", {"--cluster-key-file", key});
  await("worker w1 joins", [&] {
    auto nodes = c.troupe({"--key-file", key, "nodes"});
    return nodes.code == 0 && nodes.out.find("w1") != std::string::npos &&
           nodes.out.find("alive") != std::string::npos;
  });
  auto how = c.troupe({"--key-file", key, "submit", "--wait", "--", "true"});
  CHECK(how.code == 0);

  how = c.troupe({"nodes"});
  CHECK(how.code == 3);
  CHECK(has(how.err, "asks for a key"));
  CHECK(has(how.err, "--key-file"));
  how = c.troupe({"--key-file", other, "nodes"});
  CHECK(how.code == 3);
  CHECK(has(how.err, "another key"));
  auto& stranger =
      c.start_worker("w2", {"--cluster-key-file", other, "--membership-rejoin-for", "0s"});
  auto end = stranger.wait();
  CHECK(end.code == 1);
  CHECK(has(end.err, "another key"));
  auto& keyless = c.start_worker("w3", {"--membership-rejoin-for", "0s"});
  end = keyless.wait();
  CHECK(end.code == 1);
  CHECK(has(end.err, "asks for a key"));

  CHECK(c.troupe({"--key-file", key, "shutdown"}).code == 0);
  CHECK(worker.wait().code == 0);
  end = head.wait();
  CHECK(end.code == 0);
  CHECK(has(end.err, "refused (unauthenticated): it has no key"));
  CHECK(has(end.err, "refused (unauthenticated): its key is another one"));
}

TEST_CASE("a controller without a key takes nobody with one, and says that it has none") {
  cluster c;
  auto key = new_key(c, "cluster.key");
  auto& head = c.start_controller({"--log-level", "info"});
  CHECK(has(head.out(), "without a key, only processes of this user on this machine connect"));
  auto how = c.troupe({"--key-file", key, "nodes"});
  CHECK(how.code == 3);
  CHECK(has(how.err, "the peer has none"));
  CHECK(c.troupe({"nodes"}).code == 0);
  c.ask({"shutdown"});
  auto end = head.wait();
  CHECK(has(end.err, "listening on loopback addresses only"));
  CHECK(has(end.err, "it has a key and this node has none"));
}

TEST_CASE("a key file is made once, and used only if nobody else can read it") {
  cluster c;
  auto key = new_key(c, "cluster.key");
  std::ifstream file{key};
  std::string before{std::istreambuf_iterator<char>{file}, {}};
  auto again = process{c.launch({TROUPED_PROGRAM, "--new-key", key})}.wait();
  CHECK(again.code == 1);
  CHECK(has(again.err, "exists already"));
  std::ifstream same{key};
  CHECK(std::string{std::istreambuf_iterator<char>{same}, {}} == before);

  std::filesystem::permissions(key, std::filesystem::perms::others_read,
                               std::filesystem::perm_options::add);
  auto how = process{c.launch({TROUPED_PROGRAM, "--check", "--cluster-key-file", key})}.wait();
  CHECK(how.code == 2);
  CHECK(has(how.err, "chmod 600 " + key));
  how = c.troupe({"--key-file", key, "--controller", "127.0.0.1:1", "nodes"});
  CHECK(how.code == 3);
  CHECK(has(how.err, "chmod 600 " + key));

  how = process{c.launch({TROUPED_PROGRAM, "--check", "--node-listen", "0.0.0.0:0"})}.wait();
  CHECK(how.code == 2);
  CHECK(has(how.err, "trouped --new-key"));
}

TEST_SUITE_END();

} // namespace cluster_test
