// SPDX-License-Identifier: MIT
#pragma once

#include "shim/engine/sites.hpp"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chime::shim {

/// One change at one place.
struct mutant {
    site* where;
    weakening how = weakening::none;
    bool is_omitted = false;
    std::string change;

    void put_in_force() const noexcept {
        where->weakened = how;
        where->is_omitted = is_omitted;
        set_focus(*where);
    }
};

/// All of the places that were met so far and whose names begin like this.
[[nodiscard]] std::vector<mutant> mutants_of_places(std::string_view begin);

/// What `ask` answers in a child of this program: whatever it breaks stays there.
[[nodiscard]] std::string answer_of_child(const std::function<std::string()>& ask);

/// Makes every atomic step of the library weaker by one order, or leaves it out, one after the other, runs the scenarios
/// that reach it, and prints which of them notices. Those that nobody notices must have an excuse.
///
/// Only those whose place contains `filter`. Answers the exit code: 0, all were noticed or have an excuse, no excuse is for
/// what is noticed, and none is for what is not there.
///
/// If `only_excused`: those alone that have an excuse, each for longer.
[[nodiscard]] int run_mutants(std::string_view filter, bool only_excused);

/// Puts back every bug of history whose name contains `filter`; 0: the scenario that is named for it notices each.
[[nodiscard]] int run_old_bugs(std::string_view filter);

/// Why one change of one step is right to stay out, although no scenario notices it.
struct excuse {
    std::string_view file;
    std::string_view function;  ///< Its name alone.
    std::string_view source;    ///< Part of the line.
    std::string_view change;    ///< All of it: what covers an order does not cover that the step is left out.
    std::string_view reason;
};

/// What would do no harm: why that is so, and why it is not done.
[[nodiscard]] std::span<const excuse> proven_harmless() noexcept;

/// The bug that a mutant puts back; empty: none that has a name.
[[nodiscard]] std::string_view old_bug_named(const mutant& tried);
/// What the scenario that is named for that bug has noticed; empty: nothing. In a child process.
[[nodiscard]] std::string answer_of_its_scenario(const mutant& tried);

}  // namespace chime::shim
