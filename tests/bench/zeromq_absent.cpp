// In place of zeromq_rows.cpp where there is no libzmq.
#include "zeromq_rows.hpp"

#include <stdexcept>

namespace bench {

namespace {

[[noreturn]] void absent() {
  throw std::logic_error{"built without libzmq"};
}

} // namespace

bool zeromq_present() {
  return false;
}

sample zeromq_round_trip(const context&) {
  absent();
}

sample zeromq_one_way(const context&) {
  absent();
}

sample zeromq_payload(const context&, size_t, size_t) {
  absent();
}

int zeromq_serve(const context&, const std::vector<std::string>&) {
  absent();
}

} // namespace bench
