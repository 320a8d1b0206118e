#include "troupe/transport/shared_key.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

using namespace troupe;
using namespace troupe::transport;
namespace fs = std::filesystem;

namespace {

struct scratch_folder {
  scratch_folder() {
    auto pattern = (fs::temp_directory_path() / "troupe-key-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~scratch_folder() { fs::remove_all(path); }
  fs::path path;
};

mode_t mode_of(const fs::path& file) {
  struct stat about {};
  REQUIRE(::stat(file.c_str(), &about) == 0);
  return about.st_mode & 07777;
}

bool mentions(const error& e, std::string_view what) {
  return e.text().find(what) != std::string::npos;
}

} // namespace

TEST_CASE("a tag fits one key and one text") {
  auto key = shared_key::random();
  auto tag = key->sign({bytes_of("one"), bytes_of("two")});
  CHECK(key->matches(tag, {bytes_of("onetwo")})); // parts are one piece
  CHECK_FALSE(key->matches(tag, {bytes_of("one"), bytes_of("tw")}));
  CHECK_FALSE(key->matches(tag, {bytes_of("two"), bytes_of("one")}));
  CHECK_FALSE(shared_key::random()->matches(tag, {bytes_of("onetwo")}));
  for (size_t bit = 0; bit < 8 * tag.size(); ++bit) {
    auto other = tag;
    other[bit / 8] ^= std::byte{1} << (bit % 8);
    CHECK_FALSE(key->matches(other, {bytes_of("onetwo")}));
  }
}

TEST_CASE("the tag is keyed BLAKE2b of 16 bytes") {
  // From the algorithm's reference implementation: blake2b(b"troupe", digest_size=16,
  // key=bytes(range(32))).
  auto key = shared_key::parse("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
  REQUIRE(key);
  auto tag = (*key)->sign({bytes_of("troupe")});
  std::string digits;
  for (auto byte : tag) {
    constexpr auto hex = "0123456789abcdef";
    digits += hex[std::to_integer<unsigned>(byte) / 16];
    digits += hex[std::to_integer<unsigned>(byte) % 16];
  }
  CHECK(digits == "5f158b5368cf73f9c30572ab5390304c");
}

TEST_CASE("a key's text reads back as the same key") {
  auto key = shared_key::random();
  auto text = key->text();
  CHECK(text.size() == 65);
  auto again = shared_key::parse(text);
  REQUIRE(again);
  CHECK((*again)->matches(key->sign({bytes_of("x")}), {bytes_of("x")}));
  CHECK((*again)->text() == text);
  std::set<std::string> different;
  for (int i = 0; i < 100; ++i)
    different.insert(shared_key::random()->text());
  CHECK(different.size() == 100);
}

TEST_CASE("what is no key is refused and not quoted") {
  auto digits = shared_key::random()->text();
  digits.pop_back();
  for (auto& text : {std::string{}, digits.substr(1), digits + "0", digits + " 0", "0x" + digits,
                     digits.substr(1) + "g", digits.substr(0, 32) + " " + digits.substr(33),
                     std::string(64, '\0'), digits + std::string(1, '\0')}) {
    auto parsed = shared_key::parse(text);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().code() == errc::invalid_argument);
    CHECK_FALSE(mentions(parsed.error(), digits.substr(2, 20)));
  }
  CHECK(shared_key::parse(digits + " \r\n"));
}

TEST_CASE("a new key file is its owner's only and is never overwritten") {
  scratch_folder folder;
  auto file = folder.path / "cluster.key";
  auto old = ::umask(0);
  auto made = create_key_file(file);
  ::umask(old);
  REQUIRE(made);
  CHECK(mode_of(file) == 0600);
  auto key = load_key_file(file);
  REQUIRE(key);
  auto text = (*key)->text();

  auto again = create_key_file(file);
  REQUIRE_FALSE(again);
  CHECK(again.error().code() == errc::already_exists);
  CHECK(mentions(again.error(), file.string()));
  key = load_key_file(file);
  REQUIRE(key);
  CHECK((*key)->text() == text);

  fs::create_symlink("elsewhere", folder.path / "link");
  CHECK_FALSE(create_key_file(folder.path / "link"));
  CHECK_FALSE(fs::exists(folder.path / "elsewhere"));
}

TEST_CASE("a key file that others may read or write is refused with the remedy") {
  scratch_folder folder;
  auto file = folder.path / "cluster.key";
  REQUIRE(create_key_file(file));
  for (mode_t mode : {0640, 0604, 0620, 0602, 0644, 0610}) {
    REQUIRE(::chmod(file.c_str(), mode) == 0);
    auto key = load_key_file(file);
    REQUIRE_FALSE(key);
    CHECK(key.error().code() == errc::permission_denied);
    CHECK(mentions(key.error(), "chmod 600 " + file.string()));
  }
  for (mode_t mode : {0600, 0400}) {
    REQUIRE(::chmod(file.c_str(), mode) == 0);
    CHECK(load_key_file(file));
  }
}

TEST_CASE("a key file of another user is refused") {
  if (::geteuid() != 0) {
    MESSAGE("not root: no file can be given to another user here");
    return;
  }
  scratch_folder folder;
  auto file = folder.path / "cluster.key";
  REQUIRE(create_key_file(file));
  REQUIRE(::chown(file.c_str(), 65534, 65534) == 0);
  auto key = load_key_file(file);
  REQUIRE_FALSE(key);
  CHECK(key.error().code() == errc::permission_denied);
  CHECK(mentions(key.error(), "another user"));
}

TEST_CASE("a key file that is none says what is wrong") {
  scratch_folder folder;
  auto missing = load_key_file(folder.path / "none");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code() == errc::not_found);

  auto directory = folder.path / "directory";
  fs::create_directory(directory);
  fs::permissions(directory, fs::perms::owner_all);
  auto read = load_key_file(directory);
  REQUIRE_FALSE(read);
  CHECK(read.error().code() == errc::invalid_argument);

  auto pipe = folder.path / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_FALSE(load_key_file(pipe));

  auto file = folder.path / "text";
  std::ofstream{file} << "hello\n";
  REQUIRE(::chmod(file.c_str(), 0600) == 0);
  read = load_key_file(file);
  REQUIRE_FALSE(read);
  CHECK(read.error().code() == errc::invalid_argument);
  CHECK(mentions(read.error(), file.string()));

  auto large = folder.path / "large";
  std::ofstream{large} << shared_key::random()->text() << std::string(100'000, '\n') << "x";
  REQUIRE(::chmod(large.c_str(), 0600) == 0);
  CHECK(load_key_file(large)); // only its beginning is looked at
}
