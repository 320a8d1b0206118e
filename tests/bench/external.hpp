// Programs of others that measure with a server and a client process of their own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

/// Whether `program` is in PATH.
bool in_path(const std::string& program);

/// A port at `address` that nobody has now.
uint16_t free_port(const std::string& address);

/// Starts `server`, then runs `client` until it succeeds: the server may not listen yet.
/// @returns what the client printed. Throws `std::runtime_error` when that does not come in time.
std::string run_pair(const std::vector<std::string>& server,
                     const std::vector<std::string>& client);

/// The last line of `text` that begins with a digit, after blanks; its fields, which `separators`
/// part. Throws `std::runtime_error` when there is none.
std::vector<double> last_numbers(const std::string& text, const std::string& separators);

} // namespace bench
