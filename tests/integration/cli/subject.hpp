// What the tests of this directory run on.
#pragma once

#include <string>

namespace cli_test {

/// The device that the tests with a controller use; set once by main.
std::string& device_under_test();

} // namespace cli_test
