// SPDX-License-Identifier: MIT
#pragma once

#include "shim/engine/sites.hpp"

#include <functional>
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
/// that reach it, and prints which of them notices. Those that nobody notices must be known to be harmless.
///
/// Only those whose place contains `filter`. Answers the exit code: 0, all were noticed or are harmless.
///
/// If `only_excused`: those alone that are said to be harmless, each for longer; 0: nobody has noticed one.
[[nodiscard]] int run_mutants(std::string_view filter, bool only_excused);

/// Puts back every bug of history whose name contains `filter`; 0: the scenario that is named for it notices each.
[[nodiscard]] int run_old_bugs(std::string_view filter);

/// Why a mutant is harmless; empty: it is not known to be. `source` is its line, and the next one.
[[nodiscard]] std::string_view harmless_because(std::string_view file, std::string_view source,
                                                std::string_view change);

/// The bug that a mutant puts back; empty: none that has a name.
[[nodiscard]] std::string_view old_bug_named(const mutant& tried);
/// What the scenario that is named for that bug has noticed; empty: nothing. In a child process.
[[nodiscard]] std::string answer_of_its_scenario(const mutant& tried);

}  // namespace chime::shim
