#include "floor_rows.hpp"

#include "shared_queue.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <sys/mman.h>

namespace bench {

namespace {

/// Messages of the one-way row that are shown to the reader together, as many as the actors' row
/// acknowledges together.
constexpr uint32_t batch = 250;

struct queues {
  shared_queue there;
  shared_queue back;
};

/// Two queues and room for a payload, in a memory file.
class shared_area {
public:
  explicit shared_area(size_t payload_bytes)
      : shared_area(::memfd_create("bench", MFD_CLOEXEC), payload_bytes, true) {}
  shared_area(int fd, size_t payload_bytes) : shared_area(fd, payload_bytes, false) {}
  ~shared_area() {
    ::munmap(memory_, size_);
    ::close(fd_);
  }
  shared_area(const shared_area&) = delete;
  shared_area& operator=(const shared_area&) = delete;

  int fd() const noexcept { return fd_; }
  queues& ring() noexcept { return *static_cast<queues*>(memory_); }
  char* payload() noexcept { return static_cast<char*>(memory_) + sizeof(queues); }

private:
  shared_area(int fd, size_t payload_bytes, bool fresh)
      : fd_(fd), size_(sizeof(queues) + payload_bytes) {
    if (fd_ < 0 || (fresh && ::ftruncate(fd_, static_cast<off_t>(size_)) != 0))
      throw std::runtime_error{std::string{"cannot make shared memory: "} + std::strerror(errno)};
    memory_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (memory_ == MAP_FAILED)
      throw std::runtime_error{std::string{"cannot map shared memory: "} + std::strerror(errno)};
  }

  int fd_;
  size_t size_;
  void* memory_ = nullptr;
};

std::unique_ptr<child> start(const context& c, const std::string& what, size_t bytes,
                             shared_area& area) {
  auto peer = c.start_peer("floor", {what, std::to_string(bytes)}, area.fd());
  peer->line(std::chrono::seconds{60});
  return peer;
}

} // namespace

sample floor_round_trip(const context& c, bool spinning) {
  shared_area area{0};
  auto peer = start(c, spinning ? "echo-spinning" : "echo", 0, area);
  measurement course{c.usual(), peer->id()};
  shared_queue::message message{};
  do {
    area.ring().there.push(message, 1, spinning);
    area.ring().back.pop(message, 1, spinning);
  } while (course.unit_done(1));
  sample out;
  course.add_latency(out);
  course.add_costs(out);
  return out;
}

sample floor_one_way(const context& c) {
  shared_area area{0};
  auto peer = start(c, "drain", 0, area);
  measurement course{c.usual(), peer->id()};
  shared_queue::message message{};
  do {
    area.ring().there.push(message, batch, false);
  } while (course.unit_done(batch));
  sample out;
  course.add_rate(out);
  course.add_costs(out);
  return out;
}

sample floor_payload(const context& c, size_t bytes) {
  shared_area area{bytes};
  std::memset(area.payload(), 'x', bytes);
  auto peer = start(c, "copy", bytes, area);
  measurement course{c.usual(), peer->id()};
  shared_queue::message message{};
  do {
    area.ring().there.push(message, 1, false);
    area.ring().back.pop(message, 1, false);
  } while (course.unit_done(1));
  sample out;
  course.add_throughput(out, bytes);
  course.add_costs(out);
  return out;
}

int floor_serve(const context&, const std::vector<std::string>& arguments) {
  const auto& what = arguments.at(0);
  auto bytes = std::stoull(arguments.at(1));
  shared_area area{3, bytes};
  std::vector<char> warm(what == "copy" ? bytes : 0, 'y');
  std::puts("ready");
  std::fflush(stdout);
  auto spinning = what == "echo-spinning";
  for (shared_queue::message message;;) {
    area.ring().there.pop(message, what == "drain" ? batch : 1, spinning);
    if (what == "drain")
      continue;
    if (what == "copy") {
      std::memcpy(warm.data(), area.payload(), bytes);
      if (warm.back() != 'x')
        return 1;
    }
    area.ring().back.push(message, 1, spinning);
  }
}

} // namespace bench
