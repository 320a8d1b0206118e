// A key for tests of devices that other machines reach: those need one.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <troupe/transport/shared_key.hpp>
#include <unistd.h>

namespace support {

/// Makes a key file, gone with this object, and names it in TROUPE_KEY_FILE for this process and
/// its children; leaves a file alone that is named there already. While there is one thread.
class key_for_tests {
public:
  key_for_tests() {
    if (std::getenv("TROUPE_KEY_FILE"))
      return;
    file_ = std::filesystem::temp_directory_path() /
            ("troupe-test-" + std::to_string(::getpid()) + ".key");
    if (auto made = troupe::transport::create_key_file(file_); !made)
      throw std::runtime_error{made.error().text()};
    ::setenv("TROUPE_KEY_FILE", file_.c_str(), 1);
  }
  ~key_for_tests() {
    if (!file_.empty())
      std::filesystem::remove(file_);
  }
  key_for_tests(const key_for_tests&) = delete;
  key_for_tests& operator=(const key_for_tests&) = delete;

private:
  std::filesystem::path file_;
};

} // namespace support
