// A program of a user that knows Troupe from its installation only: something of each layer is
// called.
#include <iostream>
#include <troupe/actors/captured_output.hpp>
#include <troupe/framework/units.hpp>
#include <troupe/transport/middleman.hpp>

int main() {
  caf::actor_system_config config;
  config.load<troupe::transport::middleman>();
  caf::actor_system system{config};
  auto& middleman = troupe::transport::middleman::of(system);
  if (auto ready = middleman.ready(); !ready) {
    std::cerr << ready.error().text() << '\n';
    return 1;
  }
  std::cout << "device " << middleman.device_name() << '\n';
  auto size = troupe::parse_size("8GiB");
  if (!size || *size != uint64_t{8} << 30)
    return 1;
  return troupe::cluster::captured_output{}.size() == 0 ? 0 : 1;
}
