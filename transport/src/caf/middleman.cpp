#include "troupe/transport/middleman.hpp"

#include "caf/multiplexer.hpp"
#include "caf/node_broker.hpp"
#include "troupe/transport/log.hpp"

#include <algorithm>
#include <caf/timespan.hpp>
#include <cstdlib>

namespace troupe::transport {

namespace {

constexpr size_t smallest_rendezvous = 1024; // below this an announcement is dearer than the copy

/// The key in `file`, or in the one that the environment names, or none.
result<shared_key_ptr> find_key(std::string file) {
  if (auto named = std::getenv("TROUPE_KEY_FILE"); file.empty() && named)
    file = named;
  return file.empty() ? result<shared_key_ptr>{} : load_key_file(file);
}

std::chrono::milliseconds milliseconds_of(const caf::actor_system_config& config,
                                          caf::string_view name, caf::timespan fallback) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(caf::get_or(config, name, fallback));
}

} // namespace

middleman::middleman(caf::actor_system& system)
    : caf::io::middleman(system), backend_(std::make_unique<multiplexer>(&system)) {}

middleman::~middleman() = default;

caf::actor_system::module* middleman::make(caf::actor_system& system, caf::detail::type_list<>) {
  // CAF's own default, work stealing, polls: an idle node would use a tenth of a core for nothing.
  // The scheduler is made right after the modules, from the configuration that the application has
  // made and we may complete.
  auto& config = const_cast<caf::actor_system_config&>(system.config());
  if (!caf::get_if<caf::atom_value>(&config, "scheduler.policy"))
    config.set("scheduler.policy", caf::atom("sharing"));
  return new middleman{system};
}

middleman& middleman::of(caf::actor_system& system) {
  return static_cast<middleman&>(system.middleman());
}

void middleman::init(caf::actor_system_config& config) {
  // Without BASP workers a message is deserialized where it arrived: one copy and one thread switch
  // less.
  if (!caf::get_if<size_t>(&config, "middleman.workers"))
    config.set("middleman.workers", size_t{0});
  // The loop needs a thread of its own, and so does CAF's middleman actor: it is known by it (see
  // `start`).
  config.set("middleman.manual-multiplexing", false);
  config.set("middleman.attach-utility-actors", false);
  multiplexer::settings chosen;
  chosen.device = caf::get_or(config, "troupe.device", chosen.device);
  chosen.key = find_key(caf::get_or(config, "troupe.key-file", std::string{}));
  chosen.channels.rendezvous_threshold = std::max<size_t>(
      caf::get_or(config, "troupe.eager-threshold", chosen.channels.rendezvous_threshold),
      smallest_rendezvous);
  chosen.connect_timeout =
      milliseconds_of(config, "troupe.connect-timeout", chosen.connect_timeout);
  chosen.shutdown_timeout =
      milliseconds_of(config, "troupe.shutdown-timeout", chosen.shutdown_timeout);
  chosen.spin_window = caf::get_or(config, "troupe.spin-window", caf::timespan{chosen.spin_window});
  chosen.run_handlers = caf::get_or(config, "troupe.run-handlers", chosen.run_handlers);
  backend_->open(std::move(chosen));
  caf::io::middleman::init(config);
}

void middleman::start() {
  if (backend_->ready())
    named_broker<node_broker>(caf::atom("BASP")); // CAF finds it there, and makes none of its own
  caf::io::middleman::start();
  // CAF asks its backend for ports and connections in the same words for its own actors as for
  // brokers of the application. The former come from the thread of its middleman actor: make it ask
  // once, and remember.
  backend_->begin_probe();
  auto refused = open(0);
  static_cast<void>(refused); // always: the probe opens nothing
  backend_->end_probe();
}

caf::io::network::multiplexer& middleman::backend() {
  return *backend_;
}

status middleman::ready() const {
  return backend_->ready();
}

std::string middleman::device_name() const {
  return backend_->ready() ? backend_->loop().adapter().name() : std::string{};
}

std::string middleman::device_choice() const {
  return backend_->ready() ? backend_->loop().choice() : std::string{};
}

bool middleman::has_key() const {
  return backend_->loop().admission().key() != nullptr;
}

memory_service& middleman::memory() {
  return backend_->memory();
}

engine& middleman::loop() {
  return backend_->loop();
}

} // namespace troupe::transport
