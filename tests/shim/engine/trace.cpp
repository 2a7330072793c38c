// SPDX-License-Identifier: MIT
#include "shim/engine/execution.hpp"

#include <iostream>
#include <sstream>
#include <string>
#include <utility>

// What is told of an execution: step by step, and where everybody stands.

namespace chime::shim {

void execution::note(const std::string& what) {
    if (!options_.traces) return;
    const pause own;
    add_to_trace(what, running_->last != nullptr ? "behind " + running_->last->name() : "");
}

void execution::note(const std::string& what, const site& where) {
    if (!options_.traces) return;
    const pause own;
    add_to_trace(what, where.name());
}

/// What nobody in particular does has no place.
void execution::add_to_trace(const std::string& what, const std::string& place) {
    std::ostringstream line;
    line << outcome_.steps << '\t' << running_->name << '\t' << what;
    if (!place.empty()) line << '\t' << place;
    outcome_.trace.push_back(std::move(line).str());
}

std::string execution::where_all_stand() const {
    std::ostringstream text;
    for (unsigned thread = 0; thread < count_; ++thread) {
        const fiber& each = *fibers_[thread];
        if (each.now == fiber::state::finished) continue;
        text << ' ' << each.name;
        if (each.now == fiber::state::blocked) {
            text << " waits for " << each.waits_how;
        } else {
            text << " could go on";
        }
        if (each.last != nullptr) text << ", behind " << each.last->name();
        text << ';';
    }
    return text.str();
}

void execution::tell_where_all_stand() {
    is_inside_ = false;
    std::cerr << '\n' << (only_ == nullptr ? " no execution is going on" : only_->where_all_stand()) << std::endl;
}

}  // namespace chime::shim
