// SPDX-License-Identifier: MIT
#include "shim/mutants.hpp"

#include <array>

namespace chime::shim {

namespace {

struct excuse {
    std::string_view file;
    std::string_view source;  ///< Part of the line.
    std::string_view change;  ///< Part of what is changed; empty: whatever it is.
    std::string_view reason;
};

constexpr std::array<excuse, 1> excuses{{
    {"src/worker/parking.cpp", "both->event.signal()", "", "it is never left out"},
}};

}  // namespace

std::string_view harmless_because(std::string_view file, std::string_view source, std::string_view change) {
    for (const excuse& each : excuses) {
        if (file == each.file && source.find(each.source) != source.npos && change.find(each.change) != change.npos) {
            return each.reason;
        }
    }
    return {};
}

}  // namespace chime::shim
