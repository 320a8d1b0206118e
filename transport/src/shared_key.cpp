#include "troupe/transport/shared_key.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe::transport {

namespace {

constexpr size_t most_file_bytes = 4096; // far more than any key file has

static_assert(shared_key::bytes == crypto_generichash_KEYBYTES);
static_assert(std::tuple_size_v<shared_key::tag> == crypto_generichash_BYTES_MIN);

/// libsodium picks its implementations, and ends the process where there is no randomness.
void prepare_sodium() {
  static const int ready = sodium_init();
  static_cast<void>(ready);
}

const unsigned char* raw(byte_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

struct owned_file {
  explicit owned_file(int made) : fd(made) {}
  ~owned_file() {
    if (fd >= 0)
      ::close(fd);
  }
  owned_file(const owned_file&) = delete;
  owned_file& operator=(const owned_file&) = delete;
  int fd;
};

/// Text that is wiped when it goes.
struct secret_text {
  ~secret_text() { sodium_memzero(text.data(), text.size()); }
  std::string text;
};

error file_error(const std::string& what, int errno_value) {
  auto problem = system_error(what, errno_value);
  if (errno_value == ENOENT)
    return {errc::not_found, problem.text()};
  if (errno_value == EEXIST)
    return {errc::already_exists, problem.text()};
  return problem;
}

status check_owner(const std::string& name, const struct stat& about) {
  if (!S_ISREG(about.st_mode))
    return fail(errc::invalid_argument, "key file " + name + " is not a file");
  if (about.st_uid != ::geteuid() && about.st_uid != 0)
    return fail(errc::permission_denied,
                "key file " + name +
                    " belongs to another user, who could change the key: give it to the user "
                    "that Troupe runs as (chown)");
  if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return fail(errc::permission_denied,
                "key file " + name + " may be read or changed by other users: chmod 600 " + name);
  return {};
}

} // namespace

shared_key_ptr shared_key::random() {
  std::shared_ptr<shared_key> made{new shared_key};
  fill_random(std::as_writable_bytes(std::span{made->bytes_}));
  return made;
}

result<shared_key_ptr> shared_key::parse(std::string_view text) {
  prepare_sodium();
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
    text.remove_suffix(1);
  std::shared_ptr<shared_key> made{new shared_key};
  size_t length = 0;
  const char* end = nullptr;
  if (text.size() != 2 * bytes ||
      sodium_hex2bin(made->bytes_.data(), bytes, text.data(), text.size(), nullptr, &length,
                     &end) != 0 ||
      length != bytes || end != text.data() + text.size())
    return fail(errc::invalid_argument, "a key is 64 hexadecimal digits");
  return made;
}

shared_key::~shared_key() {
  sodium_memzero(bytes_.data(), bytes_.size());
}

std::string shared_key::text() const {
  std::string digits(2 * bytes + 1, '\0'); // sodium ends it with a zero byte
  sodium_bin2hex(digits.data(), digits.size(), bytes_.data(), bytes_.size());
  digits.back() = '\n';
  return digits;
}

shared_key::tag shared_key::sign(std::initializer_list<byte_view> parts) const {
  crypto_generichash_state state;
  tag made{};
  crypto_generichash_init(&state, bytes_.data(), bytes_.size(), made.size());
  for (auto part : parts)
    crypto_generichash_update(&state, raw(part), part.size());
  crypto_generichash_final(&state, reinterpret_cast<unsigned char*>(made.data()), made.size());
  sodium_memzero(&state, sizeof state);
  return made;
}

bool shared_key::matches(const tag& claimed, std::initializer_list<byte_view> parts) const {
  auto right = sign(parts);
  return sodium_memcmp(right.data(), claimed.data(), right.size()) == 0;
}

void fill_random(byte_span out) {
  prepare_sodium();
  randombytes_buf(out.data(), out.size());
}

status create_key_file(const std::filesystem::path& file) {
  auto what = "making the key file " + file.string();
  owned_file made{::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (made.fd < 0) {
    auto problem = file_error(what, errno);
    if (problem.code() == errc::already_exists)
      return fail(errc::already_exists,
                  file.string() + " exists already; a key in use is not overwritten: name another "
                                  "file, or remove that one first");
    return fail(problem);
  }
  secret_text content{shared_key::random()->text()};
  std::string_view rest = content.text;
  while (!rest.empty()) {
    auto written = ::write(made.fd, rest.data(), rest.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0) {
      auto problem = system_error(what, errno);
      ::unlink(file.c_str());
      return fail(problem);
    }
    rest.remove_prefix(static_cast<size_t>(written));
  }
  // A umask may have taken the owner's rights too.
  if (::fchmod(made.fd, S_IRUSR | S_IWUSR) != 0 || ::fsync(made.fd) != 0) {
    auto problem = system_error(what, errno);
    ::unlink(file.c_str());
    return fail(problem);
  }
  return {};
}

result<shared_key_ptr> load_key_file(const std::filesystem::path& file) {
  auto name = file.string();
  // Not blocking: it might be a pipe.
  owned_file opened{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (opened.fd < 0)
    return fail(file_error("reading the key file " + name, errno));
  struct stat about {};
  if (::fstat(opened.fd, &about) != 0)
    return fail(system_error("reading the key file " + name, errno));
  if (auto checked = check_owner(name, about); !checked)
    return fail(checked.error());
  secret_text content{std::string(most_file_bytes, '\0')};
  size_t length = 0;
  while (length < content.text.size()) {
    auto got = ::read(opened.fd, content.text.data() + length, content.text.size() - length);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return fail(system_error("reading the key file " + name, errno));
    if (got == 0)
      break;
    length += static_cast<size_t>(got);
  }
  auto key = shared_key::parse(std::string_view{content.text}.substr(0, length));
  if (!key)
    return fail(errc::invalid_argument, "key file " + name + ": " + key.error().text() +
                                            "; `trouped --new-key FILE` makes one");
  return key;
}

} // namespace troupe::transport
