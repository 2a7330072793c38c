// SPDX-License-Identifier: MIT
#pragma once

#include "results.hpp"
#include "work.hpp"

#include <string>

namespace chime_demo {

/// The work on a chime::runtime, with workers that come and go.
[[nodiscard]] results run_on_chime(const work& work);

/// The same sleepers and timeouts on a boost::asio::io_context with as many threads.
[[nodiscard]] results run_on_asio(const work& work);

/// Which Boost this was built with; empty: none, and run_on_asio() must not be called.
[[nodiscard]] std::string asio_version();

}  // namespace chime_demo
