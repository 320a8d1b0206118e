#pragma once
#include "troupe/framework/errors.hpp"
namespace troupe::cluster {
using troupe::to_caf;
using troupe::to_troupe;
} // namespace troupe::cluster
