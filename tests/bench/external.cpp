#include "external.hpp"

#include "peer.hpp"

#include <arpa/inet.h>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <netinet/in.h>
#include <sstream>
#include <stdexcept>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace bench {

namespace {

constexpr std::chrono::seconds limit{60};

} // namespace

bool in_path(const std::string& program) {
  auto path = std::getenv("PATH");
  std::istringstream folders{path ? path : ""};
  for (std::string folder; std::getline(folders, folder, ':');)
    if (std::filesystem::exists(std::filesystem::path{folder} / program))
      return true;
  return false;
}

uint16_t free_port(const std::string& address) {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  ::inet_pton(AF_INET, address.c_str(), &where.sin_addr);
  socklen_t size = sizeof where;
  auto* generic = reinterpret_cast<sockaddr*>(&where);
  auto fd = ::socket(AF_INET, SOCK_STREAM, 0);
  auto good = ::bind(fd, generic, size) == 0 && ::getsockname(fd, generic, &size) == 0;
  ::close(fd);
  if (!good)
    throw std::runtime_error{"no port is free at " + address};
  return ntohs(where.sin_port);
}

std::string run_pair(const std::vector<std::string>& server,
                     const std::vector<std::string>& client) {
  const auto deadline = child::clock::now() + limit;
  child serving{server, -1, true};
  for (;;) {
    child running{client, -1, true};
    std::string output;
    auto end = running.finish(limit, output);
    if (!end.timed_out && end.status == 0)
      return output;
    if (end.timed_out || child::clock::now() >= deadline)
      throw std::runtime_error{client.front() + ": " + end.text()};
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
  }
}

std::vector<double> last_numbers(const std::string& text, const std::string& separators) {
  std::string found;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    auto begin = line.find_first_not_of(separators);
    if (begin != std::string::npos && std::isdigit(static_cast<unsigned char>(line[begin])))
      found = line;
  }
  std::vector<double> out;
  for (size_t end = 0, begin = 0;
       (begin = found.find_first_not_of(separators, end)) != std::string::npos;) {
    end = std::min(found.find_first_of(separators, begin), found.size());
    out.push_back(std::stod(found.substr(begin, end - begin)));
  }
  if (out.empty())
    throw std::runtime_error{"no numbers in what it printed: " + text};
  return out;
}

} // namespace bench
