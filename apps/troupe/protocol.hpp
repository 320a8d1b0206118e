// Which answer belongs to which request of the command line.
#pragma once

#include "troupe/actors/messages.hpp"

namespace troupe::cli {

using namespace troupe::cluster;

template <class Request>
struct answer_type;

template <>
struct answer_type<submit_request> {
  using type = submitted;
};
template <>
struct answer_type<list_jobs_request> {
  using type = std::vector<job_summary>;
};
template <>
struct answer_type<job_request> {
  using type = job_details;
};
template <>
struct answer_type<wait_request> {
  using type = job_summary;
};
template <>
struct answer_type<output_request> {
  using type = output_chunk;
};
template <>
struct answer_type<cancel_request> {
  using type = job_summary;
};
template <>
struct answer_type<list_nodes_request> {
  using type = std::vector<node_summary>;
};
template <>
struct answer_type<info_request> {
  using type = cluster_info;
};
template <>
struct answer_type<command_request> {
  using type = std::string;
};
template <>
struct answer_type<list_actors_request> {
  using type = std::vector<std::string>;
};
template <>
struct answer_type<shutdown_request> {
  using type = void;
};

template <class Request>
using answer_to = typename answer_type<Request>::type;

} // namespace troupe::cli
