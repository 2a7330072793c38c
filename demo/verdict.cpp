// SPDX-License-Identifier: MIT
#include "verdict.hpp"

#include "wording.hpp"

#include <chime/version.hpp>

#include "sides.hpp"

#include <functional>
#include <utility>
#include <vector>

namespace chime_demo {
namespace {

constexpr std::size_t label_width = 15;
constexpr std::size_t value_width = 12;
constexpr std::size_t ratio_width = 9;

std::uint64_t bytes_per_sleeper(const work& work, const results& it) {
    return it.peak_bytes / work.sleepers;
}

/// A row of the table, and how many times less chime needs, where less is better.
class table {
 public:
    table(const results& chime, const results& asio, std::size_t width)
        : chime_(chime), asio_(asio), has_ratios_(asio.is_there && width >= 52) {
        text_ = std::string(label_width, ' ') + right_aligned("chime", value_width);
        if (asio_.is_there) text_ += right_aligned("Boost.Asio", value_width);
        if (has_ratios_) text_ += right_aligned("ratio", ratio_width);
        text_ += '\n';
    }

    void count(const char* label, const std::function<std::uint64_t(const results&)>& value) {
        add(label, [&](const results& it) { return grouped(value(it)); });
        text_ += '\n';
    }
    void time(const char* label, const std::function<std::chrono::nanoseconds(const results&)>& value) {
        add(label, [&](const results& it) { return readable(value(it)); });
        add_ratio(static_cast<double>(value(chime_).count()), static_cast<double>(value(asio_).count()));
    }
    void size(const char* label, const std::function<std::uint64_t(const results&)>& value) {
        add(label, [&](const results& it) { return grouped(value(it)); });
        add_ratio(static_cast<double>(value(chime_)), static_cast<double>(value(asio_)));
    }

    [[nodiscard]] const std::string& text() const { return text_; }

 private:
    void add(const char* label, const std::function<std::string(const results&)>& value) {
        text_ += left_aligned(label, label_width) + right_aligned(value(chime_), value_width);
        if (asio_.is_there) text_ += right_aligned(value(asio_), value_width);
    }
    void add_ratio(double chime, double asio) {
        if (has_ratios_ && chime > 0)
            text_ += right_aligned(std::string("x").append(with_digits(asio / chime, 1)), ratio_width);
        text_ += '\n';
    }

    const results& chime_;
    const results& asio_;
    bool has_ratios_;
    std::string text_;
};

std::string equation(std::uint64_t left, std::vector<std::uint64_t> right) {
    std::string text = grouped(left) + " =";
    for (std::size_t i = 0; i < right.size(); ++i) text += (i == 0 ? " " : " + ") + grouped(right[i]);
    return text;
}

/// One promise: a line, and one below it with the numbers.
void add_promise(verdict& so_far, bool is_kept, const std::string& promise, const std::string& numbers) {
    so_far.text += (is_kept ? "ok  " : "NO  ") + promise + '\n';
    if (!numbers.empty()) so_far.text += "    " + numbers + '\n';
    so_far.is_kept = so_far.is_kept && is_kept;
}

std::string json_of(const char* name, const std::string& version, const work& work, const results& it) {
    const counts& seen = it.seen;
    const auto number = [](const char* key, std::uint64_t value) {
        return std::string(", \"") + key + "\": " + std::to_string(value);
    };
    const auto late = [&](double fraction) { return static_cast<std::uint64_t>(seen.late.quantile(fraction).count()); };
    std::string text = std::string("{\"name\": \"") + name + "\", \"version\": \"" + version +
                       "\", \"complete\": " + (it.is_complete ? "true" : "false");
    text += number("sleepers_started", seen.started) + number("sleepers_woken", seen.woken) +
            number("sleepers_sent_home", seen.sent_home) + number("timeouts_armed", seen.armed) +
            number("timeouts_expired", seen.expired) + number("timeouts_cancelled", seen.cancelled) +
            number("early", seen.early) + number("late_p50_ns", late(0.5)) + number("late_p99_ns", late(0.99)) +
            number("late_p999_ns", late(0.999)) + number("late_max_ns", late(1)) +
            number("starting_ns", static_cast<std::uint64_t>(it.starting.count())) +
            number("elapsed_ns", static_cast<std::uint64_t>(it.elapsed.count())) +
            number("processor_ns", static_cast<std::uint64_t>(it.processor_time.count())) +
            number("peak_bytes_per_sleeper", bytes_per_sleeper(work, it));
    if (it.ledger.is_there) {
        text += number("armed", it.ledger.armed) + number("fired", it.ledger.fired) +
                number("cancelled", it.ledger.cancelled) + number("pending", it.ledger.pending) +
                number("tasks_left", it.ledger.tasks_left) + number("workers_added", it.ledger.workers_added) +
                number("workers_retired", it.ledger.workers_retired) + number("timers_moved", it.ledger.moved);
    }
    return text + '}';
}

}  // namespace

std::string side_by_side(const work& work, const results& chime, const results& asio, std::size_t width) {
    table rows(chime, asio, width);
    rows.count("sleepers woken", [](const results& it) { return it.seen.woken; });
    rows.count("timeouts armed", [](const results& it) { return it.seen.armed; });
    rows.count("  cancelled", [](const results& it) { return it.seen.cancelled; });
    rows.count("  expired", [](const results& it) { return it.seen.expired; });
    rows.count("early", [](const results& it) { return it.seen.early; });
    rows.time("start them all", [](const results& it) { return it.starting; });
    rows.time("late, p50", [](const results& it) { return it.seen.late.quantile(0.5); });
    rows.time("late, p99", [](const results& it) { return it.seen.late.quantile(0.99); });
    rows.time("late, worst", [](const results& it) { return it.seen.late.quantile(1); });
    rows.time("processor time", [](const results& it) { return it.processor_time; });
    rows.size("bytes / sleeper", [&](const results& it) { return bytes_per_sleeper(work, it); });
    std::string note;
    if (asio.is_there && chime.ledger.workers_retired > 0) {
        note = "Workers have come and gone meanwhile;\nthe threads of Asio have all stayed.\n";
    }
    return rows.text() + note;
}

verdict judge(const work& work, const results& chime) {
    const counts& seen = chime.seen;
    const ledger& own = chime.ledger;
    verdict result{{}, true};
    add_promise(result, own.is_balanced() && own.pending == 0, "armed = fired + cancelled + pending",
                equation(own.armed, {own.fired, own.cancelled, own.pending}));
    add_promise(result, seen.early == 0, "nothing early", "");
    if (chime.is_complete) {
        add_promise(result,
                    seen.woken == work.sleepers && seen.armed == work.sleepers &&
                        seen.armed == seen.expired + seen.cancelled && own.fired == seen.woken + seen.expired,
                    "nothing lost, nothing twice", equation(seen.armed, {seen.expired, seen.cancelled}));
        add_promise(result, own.workers_retired == 3 && own.tasks_left == 0,
                    grouped(own.workers_retired) + " workers retired,", grouped(own.moved) + " timers moved on");
    }
    add_promise(result, own.tasks_left == 0 && seen.started == seen.woken + seen.sent_home, "every coroutine has ended",
                equation(seen.started, {seen.woken, seen.sent_home}));
    return result;
}

std::string complaint_about_asio(const work& work, const results& asio) {
    const counts& seen = asio.seen;
    if (!asio.is_there || !asio.is_complete) return {};
    if (seen.woken == work.sleepers && seen.armed == seen.expired + seen.cancelled && seen.early == 0 &&
        seen.cancelled == seen.aborted) {
        return {};
    }
    return "the counts of Boost.Asio do not add up: " + grouped(seen.woken) + " of " + grouped(work.sleepers) +
           " woken, " + equation(seen.armed, {seen.expired, seen.cancelled}) + ", " + grouped(seen.aborted) +
           " told, " + grouped(seen.early) + " early";
}

std::string as_json(const work& work, const results& chime, const results& asio, bool is_kept) {
    std::string text = "{\"seconds\": " + with_digits(in_seconds(work.longest_sleep), 0) +
                       ", \"sleepers\": " + std::to_string(work.sleepers) +
                       ", \"workers\": " + std::to_string(work.workers) +
                       ", \"promises_kept\": " + (is_kept ? "true" : "false") + ",\n\"sides\": [\n  " +
                       json_of("chime", std::string(chime::version()), work, chime);
    if (asio.is_there) text += ",\n  " + json_of("boost.asio", asio_version(), work, asio);
    return text + "\n]}\n";
}

}  // namespace chime_demo
