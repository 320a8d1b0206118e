// What the second process does.
#pragma once

#include <string>
#include <vector>

namespace channel_test {

/// Plays one of these until the connection ends, and gives the exit status of the process:
///  - `receive PIECE PAUSE_AFTER`: reads pieces of so many bytes and checks them; says "paused" and
///    reads no more after so many (0: never);
///  - `receive-slowly PIECE`: likewise, a millisecond for each piece;
///  - `send BYTES SEGMENT`: sends so many bytes in segments of so many, as much as it can at once.
/// Each listens on a port that it prints ("port 1234"), takes one connection and says in the end
/// how much it has read: "bytes N right".
int play_role(const std::vector<std::string>& words);

} // namespace channel_test
