#include "executor/launch_request.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace troupe::cluster {

namespace {

size_t bytes_in(const std::vector<std::string>& strings) {
  size_t sum = 0;
  for (auto& text : strings)
    sum += text.size() + 1;
  return sum;
}

bool has_zero(std::string_view text) {
  return text.find('\0') != text.npos;
}

status check(const task_launch& what) {
  if (what.argv.empty() || what.argv.front().empty())
    return fail(errc::invalid_argument, "a task needs a program to run");
  for (auto& argument : what.argv)
    if (has_zero(argument))
      return fail(errc::invalid_argument, "an argument of a task contains a zero byte");
  for (auto& entry : what.env) {
    if (has_zero(entry))
      return fail(errc::invalid_argument, "the environment of a task contains a zero byte");
    if (auto equals = entry.find('='); equals == entry.npos || equals == 0)
      return fail(errc::invalid_argument,
                  "an entry in the environment of a task is not of the form NAME=value");
  }
  if (has_zero(what.cwd))
    return fail(errc::invalid_argument, "the working directory of a task contains a zero byte");
  return {};
}

result<unique_fd> sealed_copy(const std::vector<char>& bytes) {
  auto context = "passing " + std::to_string(bytes.size()) + " bytes of arguments and environment";
  unique_fd file{::memfd_create("troupe-task", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  if (!file)
    return fail(system_error(context, errno));
  for (size_t done = 0; done < bytes.size();) {
    auto count = ::write(file.get(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return fail(system_error(context, errno));
    done += static_cast<size_t>(count);
  }
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) !=
      0)
    return fail(system_error(context, errno));
  return file;
}

// `text` in quotes; whatever is not printable ASCII is escaped, so that it can go anywhere.
std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (unsigned char c : text) {
    if (c >= 0x20 && c < 0x7f) {
      out += static_cast<char>(c);
    } else {
      char escape[5];
      std::snprintf(escape, sizeof escape, "\\x%02x", c);
      out += escape;
    }
  }
  return out + "'";
}

std::string searched_in(const launch_summary& what) {
  if (what.search_path)
    return "its PATH is " + in_quotes(*what.search_path);
  return "its environment has no PATH, so /bin and /usr/bin were tried";
}

// What the errno alone does not tell about a program that could not be executed.
std::string execute_remedy(const launch_summary& what, int error_number) {
  auto searched = what.program.find('/') == std::string::npos;
  switch (error_number) {
  case ENOENT:
    return searched ? " (" + searched_in(what) + ")"
                    : " (there is no such file, or the interpreter it names is missing)";
  case EACCES:
    return " (it, or a directory on the way, may not be executed)";
  case ENOEXEC:
    return " (a script needs a first line like #!/bin/sh)";
  case E2BIG:
    return " (arguments and environment take " + std::to_string(what.bytes) +
           " bytes; use a file instead)";
  default:
    return {};
  }
}

errc code_for(int error_number) {
  switch (error_number) {
  case ENOENT:
  case ENOTDIR:
    return errc::not_found;
  case E2BIG:
  case EAGAIN:
  case EMFILE:
  case ENFILE:
    return errc::limit_too_low;
  default:
    return system_error("", error_number).code();
  }
}

} // namespace

result<launch_request> launch_request::encode(const task_launch& what) {
  if (auto checked = check(what); !checked)
    return fail(std::move(checked.error()));
  auto length = what.cwd.size() + 1 + bytes_in(what.argv) + bytes_in(what.env);
  if (length > guardian::max_body)
    return fail(errc::invalid_argument, "arguments and environment of a task take " +
                                            std::to_string(length) + " bytes; the limit is " +
                                            std::to_string(guardian::max_body));
  launch_request out;
  out.body_.reserve(length);
  auto append = [&](const std::string& text) {
    out.body_.insert(out.body_.end(), text.c_str(), text.c_str() + text.size() + 1);
  };
  append(what.cwd);
  for (auto& argument : what.argv)
    append(argument);
  for (auto& entry : what.env)
    append(entry);
  out.header_.kind = guardian::request_kind::start;
  out.header_.id = what.id;
  out.header_.strings = static_cast<uint32_t>(1 + what.argv.size() + what.env.size());
  out.header_.arguments = static_cast<uint32_t>(what.argv.size());
  out.header_.body_length = length;
  if (length > guardian::max_inline_body) {
    auto memory = sealed_copy(out.body_);
    if (!memory)
      return fail(std::move(memory.error()));
    out.memory_ = std::move(*memory);
    out.body_ = {};
  }
  return out;
}

int launch_request::send(int socket, int standard_output, int standard_error) const {
  int files[] = {standard_output, standard_error, memory_.get()};
  auto file_bytes = sizeof(int) * (memory_ ? 3 : 2);
  iovec parts[] = {{const_cast<guardian::request_header*>(&header_), sizeof header_},
                   {const_cast<char*>(body_.data()), body_.size()}};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof files)]{};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(file_bytes);
  auto attached = CMSG_FIRSTHDR(&message);
  attached->cmsg_level = SOL_SOCKET;
  attached->cmsg_type = SCM_RIGHTS;
  attached->cmsg_len = CMSG_LEN(file_bytes);
  std::memcpy(CMSG_DATA(attached), files, file_bytes);
  for (;;) {
    if (::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
      return 0;
    if (errno != EINTR)
      return errno;
  }
}

launch_summary::launch_summary(const task_launch& what)
    : program(what.argv.empty() ? "" : what.argv.front()), directory(what.cwd),
      bytes(bytes_in(what.argv) + bytes_in(what.env)) {
  constexpr std::string_view key = "PATH=";
  for (auto& entry : what.env)
    if (!search_path && entry.starts_with(key))
      search_path = entry.substr(key.size());
}

error explain_failure(const launch_summary& what, launch_step step, int error_number) {
  auto text = "cannot start " + in_quotes(what.program) + ": ";
  std::string remedy;
  switch (step) {
  case launch_step::request:
    text += "the guardian did not take the request";
    break;
  case launch_step::fork:
    text += "making a process";
    if (error_number == EAGAIN)
      remedy = " (the limit of processes is reached: see ulimit -u)";
    break;
  case launch_step::output:
    text += "connecting its output";
    break;
  case launch_step::directory:
    text += "changing to the directory " + in_quotes(what.directory);
    break;
  case launch_step::execute:
    text += "executing it";
    remedy = execute_remedy(what, error_number);
    break;
  }
  return {code_for(error_number), system_error(text, error_number).text() + remedy};
}

} // namespace troupe::cluster
