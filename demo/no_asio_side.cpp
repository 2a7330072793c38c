// SPDX-License-Identifier: MIT
#include "sides.hpp"

// Where there is no Boost.

namespace chime_demo {

results run_on_asio(const work&) {
    return {};
}

std::string asio_version() {
    return {};
}

}  // namespace chime_demo
