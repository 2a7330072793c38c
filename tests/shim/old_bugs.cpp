// SPDX-License-Identifier: MIT
#include "shim/mutants.hpp"

// Mutants that are bugs of history: somebody, here or elsewhere, has shipped them.

namespace chime::shim {

namespace {

struct old_bug {
    std::string_view file;
    std::string_view source;  ///< Part of the line.
    std::string_view change;
    std::string_view name;
};

constexpr old_bug old_bugs[] = {
    {"src/worker/parking.hpp", "published_.store(deadline", "left out",
     "B01: the next deadline is not published in time"},
    {"src/worker/parking.hpp", "published_.store(deadline", "seq_cst to release",
     "B02: a seq_cst load does not order an earlier release store"},
    {"src/worker/parking.cpp", "bell_.fetch_add", "left out", "B01: rung before it sleeps, it sleeps all the same"},
    {"src/worker/inbox.hpp", "top_.load(base::memory_order_seq_cst)", "seq_cst to acquire",
     "B02: the last look before sleeping sees what was"},
    {"src/worker/worker.cpp", "fetch_and(~linked_flag", "left out",
     "B12: a record that nobody can link or free any more"},
    {"src/worker/crew_postpone.cpp", "value | locked_flag", "left out",
     "a deadline is written into a record that is used again"},
    {"src/worker/worker_postpone.cpp", "is_stamping_.store(true", "left out", "a postponement is written over"},
    {"src/worker/crew_cancel.cpp", "compare_exchange_weak(value, ending", "left out",
     "B31: it runs after it was cancelled"},
    {"src/worker/inbox.hpp", "top_.exchange(closed", "left out", "B22: what is sent to who has left is forgotten"},
    {"src/worker/worker_retire.cpp", "value | linked_flag", "left out", "B22: a timer is linked twice while it moves"},
    {"src/runtime/io_context.cpp", "is_stopped.store(true", "left out", "B25: stop is not seen"},
    {"src/worker/crew.cpp", "is_stopped_.store(true", "left out", "B28: accepted, and then nobody is left to end it"},
    {"src/worker/worker_ready.cpp", "is_called_.load", "seq_cst to acquire", "B18: a call is not heard"},
};

}  // namespace

std::string_view old_bug_named(std::string_view file, std::string_view source, std::string_view change) {
    for (const old_bug& each : old_bugs) {
        if (file == each.file && source.find(each.source) != source.npos && change == each.change) return each.name;
    }
    return {};
}

}  // namespace chime::shim
