// SPDX-License-Identifier: MIT
#include "shim/mutants.hpp"

#include "shim/engine/explore.hpp"
#include "shim/engine/sites.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <iostream>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace chime::shim {

namespace {

bool is_part_of_a_protocol(const site& where) {
    if (where.is_quiet) return false;
    if (where.file.starts_with("src/runtime/metronome")) return false;  // Nothing depends on it.
    return where.file.starts_with("src/worker/") || where.file.starts_with("src/timer/") ||
           where.file.starts_with("src/task/") || where.file.starts_with("src/runtime/") ||
           where.file == "src/base/striped_counters.hpp";
}

void add_mutants(std::vector<mutant>& all, site& where) {
    const auto add = [&](weakening how, const std::string& change) { all.push_back({&where, how, false, change}); };
    const std::memory_order order = where.order;
    const bool modifies = where.kind == operation::exchange || where.kind == operation::compare;
    if (order == std::memory_order_seq_cst) {
        add(weakening::one_step, modifies                        ? "seq_cst to acq_rel"
                                 : where.kind == operation::load ? "seq_cst to acquire"
                                                                 : "seq_cst to release");
    } else if (order == std::memory_order_acq_rel) {
        add(weakening::without_acquire, "acq_rel to release");
        add(weakening::without_release, "acq_rel to acquire");
    } else if (order != std::memory_order_relaxed) {
        add(weakening::one_step, std::string(name_of(order)) + " to relaxed");
    }
    if (where.has_own_failure && where.failure != std::memory_order_relaxed) {
        add(weakening::failure, std::string("failure ") + name_of(where.failure) + " to weaker");
    }
    if (where.kind != operation::load) all.push_back({&where, weakening::none, true, "left out"});
}

/// Which scenarios reach which places, the quickest first.
std::map<site*, std::vector<const scenario*>> find_places() {
    constexpr std::uint64_t seeds = 60;
    struct measured {
        const scenario* which;
        std::clock_t took;
        std::vector<site*> reached;
    };
    std::vector<measured> all;
    for (const scenario& each : all_scenarios()) {
        for (site* const place : all_sites()) place->was_reached = false;
        warm_up(each.body);
        const std::clock_t began = std::clock();
        const finding found = try_seeds(each.body, 1, seeds);
        measured& added = all.emplace_back(measured{&each, std::clock() - began, {}});
        if (found.has_failed) {
            std::cout << each.suite << '.' << each.name << " fails without any mutation: " << found.message << '\n';
        }
        for (site* const place : all_sites()) {
            if (place->was_reached) added.reached.push_back(place);
        }
    }
    std::stable_sort(all.begin(), all.end(), [](const measured& a, const measured& b) { return a.took < b.took; });
    std::map<site*, std::vector<const scenario*>> places;
    for (const measured& each : all) {
        for (site* const place : each.reached) places[place].push_back(each.which);
    }
    return places;
}

bool covers(const excuse& given, const mutant& tried) {
    const site& where = *tried.where;
    return given.file == where.file && given.change == tried.change &&
           where.function.find("::" + std::string(given.function) + "(") != where.function.npos &&
           source_line(where.name()).find(given.source) != std::string::npos;
}

/// What is said of a change that nobody notices; null: nothing.
const excuse* find_excuse(const mutant& tried) {
    const std::span<const excuse> all = proven_harmless();
    const auto found = std::find_if(all.begin(), all.end(), [&](const excuse& each) { return covers(each, tried); });
    return found != all.end() ? &*found : nullptr;
}

/// Says which excuses are for nothing that is there, and answers how many.
unsigned count_idle_excuses(const std::vector<mutant>& all) {
    unsigned idle = 0;
    for (const excuse& each : proven_harmless()) {
        if (std::any_of(all.begin(), all.end(), [&](const mutant& tried) { return covers(each, tried); })) continue;
        ++idle;
        std::cout << each.file << ", " << each.function << "()  " << each.change << "  |  " << each.source
                  << "\n    EXCUSED, BUT NOT THERE" << std::endl;
    }
    return idle;
}

/// In a child process. Answers who has noticed it; empty: nobody.
std::string who_notices(const mutant& tried, const std::vector<const scenario*>& reached_by, std::uint64_t seconds) {
    const std::clock_t most = static_cast<std::clock_t>(seconds) * CLOCKS_PER_SEC;
    const std::clock_t began = std::clock();
    tried.put_in_force();
    // A few seeds of each first, then more and more.
    std::uint64_t first = 1;
    for (std::uint64_t seeds = 100;; seeds *= 4) {
        for (const scenario* const each : reached_by) {
            if (std::clock() - began > most) return "";
            const std::uint64_t count = std::max<std::uint64_t>(5, seeds / each->share);
            finding found = try_seeds(each->body, first, count);
            const bool is_second = first != 1 && first <= 100 + 1;
            if (!found.has_failed && each->is_small && is_second) found = try_all(each->body, 2, 2, 20'000);
            if (found.has_failed) {
                return std::string(each->suite) + "." + each->name + ": " + found.message.substr(0, 70);
            }
        }
        first += seeds;
    }
}

}  // namespace

std::string answer_of_child(const std::function<std::string()>& ask) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return "no pipe";
    std::cout.flush();
    const pid_t child = ::fork();
    if (child == 0) {
        // Of its own time: others may keep this machine busy.
        constexpr rlim_t most_seconds = 600;
        const rlimit limit{most_seconds, most_seconds};
        ::setrlimit(RLIMIT_CPU, &limit);
        const std::string answer = ask();
        [[maybe_unused]] const ssize_t written = ::write(ends[1], answer.data(), answer.size());
        ::_exit(0);
    }
    ::close(ends[1]);
    std::string answer;
    std::array<char, 256> buffer{};
    for (ssize_t count = 0; (count = ::read(ends[0], buffer.data(), buffer.size())) > 0;) {
        answer.append(buffer.data(), static_cast<std::size_t>(count));
    }
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (!WIFEXITED(status)) return "the program dies";
    return answer;
}

std::vector<mutant> mutants_of_places(std::string_view begin) {
    std::vector<mutant> all;
    for (site* const place : all_sites()) {
        if (is_part_of_a_protocol(*place) && place->name().starts_with(begin)) add_mutants(all, *place);
    }
    return all;
}

int run_mutants(std::string_view filter, bool only_excused) {
    std::map<site*, std::vector<const scenario*>> places = find_places();
    std::vector<mutant> all = mutants_of_places("");
    unsigned wrong_excuses = count_idle_excuses(all);
    std::erase_if(all, [&](const mutant& each) {
        return each.where->name().find(filter) == std::string::npos || (only_excused && find_excuse(each) == nullptr);
    });
    std::stable_sort(all.begin(), all.end(), [](const mutant& a, const mutant& b) {
        return std::pair(a.where->file, a.where->line) < std::pair(b.where->file, b.where->line);
    });
    unsigned noticed = 0;
    unsigned proven = 0;
    unsigned unnoticed = 0;
    const std::uint64_t seconds = wanted("CHIME_SECONDS", 60);
    const std::uint64_t harmless_seconds = wanted("CHIME_HARMLESS_SECONDS", only_excused ? 10 : 1);
    for (const mutant& each : all) {
        const std::string source = source_line(each.where->name());
        const excuse* const excused = find_excuse(each);
        const std::string answer = answer_of_child([&] {
            const std::string expected = answer_of_its_scenario(each);
            if (!expected.empty()) return expected;
            return who_notices(each, places[each.where], excused != nullptr ? harmless_seconds : seconds);
        });
        std::cout << each.where->name() << "  " << each.change << "  |  " << source.substr(0, 70) << "\n    ";
        if (const auto bug = old_bug_named(each); !bug.empty()) {
            std::cout << bug << "\n    ";
        }
        if (!answer.empty()) {
            ++noticed;
            if (excused != nullptr) ++wrong_excuses;
            std::cout << "noticed by " << answer << (excused != nullptr ? "  (EXCUSED, BUT NOTICED)" : "");
        } else if (excused != nullptr) {
            ++proven;
            std::cout << "harmless: " << excused->reason;
        } else {
            ++unnoticed;
            std::cout << "NOT NOTICED";
        }
        std::cout << std::endl;
    }
    std::cout << all.size() << " mutants: " << noticed << " noticed, " << proven << " proven harmless, " << unnoticed
              << " not noticed\n";
    if (wrong_excuses != 0) std::cout << wrong_excuses << " excuses are wrong\n";
    return unnoticed == 0 && wrong_excuses == 0 ? 0 : 1;
}

}  // namespace chime::shim
