// What the second process does.
#pragma once

#include <string>

namespace conformance {

/// Plays one of these until the connection ends, and gives the exit status of the process:
///  - `echo`: sends the place of a region with every right, then sends back what it receives;
///  - `sink`, argument N: posts N receives, never more;
///  - `sink-at`, argument P: listens on port P, 0 for any, and posts some receives;
///  - `burst`, argument N: sends N messages of 1000 bytes, waits until they have completed, and
///    kills itself.
/// Each listens on a port that it prints ("port 1234"), any free one unless told otherwise, and
/// takes one connection.
int play_role(const std::string& role, const std::string& argument);

} // namespace conformance
