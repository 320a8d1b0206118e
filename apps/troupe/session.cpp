#include "session.hpp"

namespace troupe::cli {

session::session(console& out, interrupts& stop, connection_options options,
                 std::vector<std::string> environment, bool lasting)
    : out_(out), stop_(stop), options_(std::move(options)), environment_(std::move(environment)),
      lasting_(lasting) {}

answer<client*> session::controller() {
  if (client_ && (!lasting_ || !client_->lost()))
    return client_.get();
  auto again = client_ != nullptr;
  client_.reset();
  auto found = find_controller(options_, environment_);
  if (!found)
    return fail_with(failure::kind::usage, found.error());
  auto where = to_string(found->where);
  if (again)
    out_.note("the controller at " + where + " went away; connecting again\n");
  auto key_file = find_key_file(options_, environment_);
  if (!key_file)
    return fail_with(failure::kind::usage, key_file.error());
  auto made = client::connect(found->where, device(), *key_file, stop_);
  if (!made)
    return tl::unexpected<failure>(made.error());
  client_ = std::move(*made);
  if (again)
    out_.note("connected to " + where + " again\n");
  return client_.get();
}

int session::report(const failure& problem) {
  switch (problem.what) {
  case failure::kind::interrupted:
    out_.complain("interrupted");
    return exit_code::interrupted;
  case failure::kind::usage:
    out_.complain(problem.why.text());
    return exit_code::usage;
  case failure::kind::connection:
    out_.complain(problem.why.text());
    return exit_code::no_controller;
  case failure::kind::cluster:
    break;
  }
  out_.complain(problem.why.text());
  return exit_code::refused;
}

} // namespace troupe::cli
