// SPDX-License-Identifier: MIT
#include "shim/engine/explore.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

namespace chime::shim {

std::vector<scenario>& all_scenarios() {
    static std::vector<scenario> all;
    return all;
}

std::uint64_t wanted(const char* variable, std::uint64_t otherwise) {
    const char* const text = std::getenv(variable);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

namespace {

/// How long an execution is in which nothing unusual happens: random strategies spread what they do over it.
outcome usual(const std::function<void()>& body) {
    replay nothing_unusual({});
    return execution::run(body, nothing_unusual, {});
}

void keep(finding& found, outcome& ended) {
    found.has_failed = true;
    found.has_foreseen = ended.has_foreseen;
    found.message = std::move(ended.message);
    found.shortest = std::move(ended.taken);
}

}  // namespace

void warm_up(const std::function<void()>& body) {
    static_cast<void>(usual(body));
}

finding try_seeds(const std::function<void()>& body, std::uint64_t first, std::uint64_t count) {
    finding found;
    outcome base = usual(body);
    found.executions = 1;
    found.steps = base.steps;
    if (base.has_failed) {
        keep(found, base);
        return found;
    }
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
        const auto decides = strategy_of_seed(seed, base.decisions);
        outcome ended = execution::run(body, *decides, {});
        ++found.executions;
        found.steps += ended.steps;
        if (!ended.has_failed) continue;
        keep(found, ended);
        found.seed = seed;
        return found;
    }
    return found;
}

finding try_all(const std::function<void()>& body, unsigned preemptions, unsigned stale_values, std::uint64_t most) {
    finding found;
    exhaustive decides(preemptions, stale_values);
    while (found.executions < most && decides.next()) {
        outcome ended = execution::run(body, decides, {});
        ++found.executions;
        found.steps += ended.steps;
        if (!ended.has_failed) continue;
        keep(found, ended);
        return found;
    }
    return found;
}

void shorten(const std::function<void()>& body, finding& found) {
    constexpr unsigned most_tries = 2000;
    unsigned tries = 0;
    for (std::size_t piece = std::max<std::size_t>(1, found.shortest.size() / 2);;
         piece = std::max<std::size_t>(1, piece / 2)) {
        bool was_shortened = false;
        for (std::size_t from = 0; from < found.shortest.size() && tries < most_tries;) {
            schedule fewer = found.shortest;
            const auto begin = fewer.begin() + static_cast<std::ptrdiff_t>(from);
            fewer.erase(begin, begin + static_cast<std::ptrdiff_t>(std::min(piece, fewer.size() - from)));
            replay decides(fewer);
            outcome ended = execution::run(body, decides, {});
            ++tries;
            // What it really did may be less still.
            if (ended.has_failed && ended.taken.size() < found.shortest.size()) {
                keep(found, ended);
                was_shortened = true;
            } else {
                from += piece;
            }
        }
        if ((piece == 1 && !was_shortened) || tries >= most_tries) return;
    }
}

namespace {

std::string trimmed(const std::string& text) {
    const std::size_t first = text.find_first_not_of(' ');
    return first == std::string::npos ? "" : text.substr(first, 110);
}

}  // namespace

std::string source_lines(const std::string& place, unsigned count) {
    static const std::string root = CHIME_SHIM_SOURCE_DIR;
    const std::size_t colon = place.rfind(':');
    if (colon == std::string::npos) return {};
    std::ifstream file(root + "/" + place.substr(0, colon));
    std::string text;
    for (int left = std::atoi(place.c_str() + colon + 1); left > 0 && std::getline(file, text); --left) {}
    std::string lines = trimmed(text);
    for (unsigned more = 1; more < count && std::getline(file, text); ++more) lines += '\n' + trimmed(text);
    return lines;
}

std::string source_line(const std::string& place) {
    return source_lines(place, 1);
}

namespace {

std::string readable(const std::string& line) {
    std::vector<std::string> parts;
    std::istringstream in(line);
    for (std::string part; std::getline(in, part, '\t');) parts.push_back(part);
    std::ostringstream out;
    out << parts[0] << std::string(parts[0].size() < 6 ? 6 - parts[0].size() : 1, ' ') << parts[1]
        << std::string(parts[1].size() < 10 ? 10 - parts[1].size() : 1, ' ') << parts[2];
    if (parts.size() > 3) {
        out << std::string(parts[2].size() < 60 ? 60 - parts[2].size() : 1, ' ') << parts[3] << "  "
            << source_line(parts[3]);
    }
    return std::move(out).str();
}

}  // namespace

std::string tell(const std::function<void()>& body, const finding& found) {
    replay decides(found.shortest);
    const outcome ended = execution::run(body, decides, {.traces = true});
    std::ostringstream out;
    out << (ended.has_failed ? ended.message : found.message + " (the replay does not fail)") << "\n";
    if (found.seed != 0) out << "seed " << found.seed << "; to see it again: CHIME_SEED=" << found.seed << "\n";
    const auto count = [&](deviation::kind how) {
        return std::count_if(found.shortest.begin(), found.shortest.end(),
                             [&](const deviation& each) { return each.how == how; });
    };
    out << "it takes " << count(deviation::kind::switched) << " switches, " << count(deviation::kind::stale)
        << " old values, " << count(deviation::kind::spurious) << " spurious failures, "
        << count(deviation::kind::false_alarm) << " false alarms, " << count(deviation::kind::refused)
        << " refusals of memory\n";
    const std::size_t most = wanted("CHIME_TRACE_LINES", 200);
    const std::size_t skipped = ended.trace.size() > most ? ended.trace.size() - most : 0;
    if (skipped != 0) out << "(" << skipped << " lines before; CHIME_TRACE_LINES=100000 shows them)\n";
    for (std::size_t line = skipped; line < ended.trace.size(); ++line) out << readable(ended.trace[line]) << '\n';
    return std::move(out).str();
}

void check(const scenario& checked) {
    constexpr std::uint64_t quick_seeds = 4000;
    constexpr std::uint64_t quick_schedules = 20'000;
    constexpr std::uint64_t schedules_per_seed = 4;
    const auto began = std::chrono::steady_clock::now();
    warm_up(checked.body);
    finding found;
    bool is_cut_short = false;
    if (const std::uint64_t seed = wanted("CHIME_SEED", 0); seed != 0) {
        found = try_seeds(checked.body, seed, 1);
    } else {
        const std::uint64_t drawn = wanted("CHIME_SEEDS", std::max<std::uint64_t>(1, quick_seeds / checked.share));
        const std::uint64_t count = checked.is_alone ? 1 : drawn;
        found = try_seeds(checked.body, wanted("CHIME_FIRST_SEED", 1), count);
        const std::uint64_t usual =
            std::getenv("CHIME_SEEDS") != nullptr ? count * schedules_per_seed : quick_schedules / checked.share;
        const std::uint64_t most = wanted("CHIME_SMALL_SCHEDULES", usual);
        if (!found.has_failed && checked.is_small && most != 0) {
            const finding all = try_all(checked.body, 2, checked.stale_values, most);
            is_cut_short = all.executions == most;
            const std::uint64_t executions = found.executions;
            const std::uint64_t steps = found.steps;
            found = all;
            found.executions += executions;
            found.steps += steps;
        }
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    std::cout << found.executions << " executions, " << found.steps / found.executions << " steps each, "
              << static_cast<std::uint64_t>(static_cast<double>(found.executions) / took.count()) << " a second"
              << (is_cut_short ? "; there are more small schedules" : "") << '\n';
    if (!found.has_failed) return;
    shorten(checked.body, found);
    ADD_FAILURE() << checked.suite << "." << checked.name << ": " << tell(checked.body, found);
}

std::set<std::string> results_of(const std::function<std::string()>& body) {
    std::set<std::string> results;
    std::string result;
    const std::function<void()> once = [&] {
        std::string text = body();
        const execution::pause own;
        result = std::move(text);
    };
    const auto keep_result = [&](const outcome& ended) {
        results.insert(ended.has_failed ? "failed: " + ended.message : result);
    };
    exhaustive all(3, 3);
    for (unsigned tried = 0; tried < 100'000 && all.next(); ++tried) keep_result(execution::run(once, all, {}));
    for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
        const auto decides = strategy_of_seed(seed, 20);
        keep_result(execution::run(once, *decides, {}));
    }
    return results;
}

}  // namespace chime::shim
