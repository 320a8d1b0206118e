// A connection that a peer of the soft device asked for.
#pragma once

#include "soft/context.hpp"
#include "soft/handshake.hpp"
#include "soft/local_socket.hpp"

namespace troupe::transport::soft {

/// Checks what the owner gave for a new pair.
status check_config(const queue_pair_config& config, byte_view private_data);

/// The peer wants data to flow over `socket`.
std::unique_ptr<connection_request> make_tcp_request(std::shared_ptr<context> device,
                                                     const endpoint& peer, const opening& start,
                                                     descriptor socket);

/// The peer, process `process`, wants to share the memory that came with `message`.
/// @returns null when that is not possible; the peer was told to use TCP.
std::unique_ptr<connection_request> make_shared_request(std::shared_ptr<context> device,
                                                        const endpoint& peer, const claim& question,
                                                        descriptor life_line, pid_t process,
                                                        local_message message);

/// Maps a peer's table of keys.
result<mapping> open_key_table(const descriptor& file);

} // namespace troupe::transport::soft
