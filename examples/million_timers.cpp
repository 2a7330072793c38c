// SPDX-License-Identifier: MIT

// A million timers through chime::timer_wheel, against the real clock: armed, some postponed, half of them cancelled,
// the rest fired by a plain loop that sleeps until the wheel's next deadline. It checks what it sees: that nothing is
// lost, nothing is early and everything comes in order.

#include <chime/time.hpp>
#include <chime/version.hpp>
#include <chime/wheel.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <new>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using chime::time_point;
using std::chrono::nanoseconds;

constexpr std::uint32_t most_timers = 50'000'000;
constexpr const char* usage = "usage: million_timers [--timers N] [--seed S] [--help]";

volatile std::sig_atomic_t interrupted = 0;

struct options {
    std::uint32_t timers = 1'000'000;
    std::uint64_t seed = 1;
    bool help = false;
};

/// One line of work: on a terminal a bar that moves, in a file one line when it is done.
class progress {
 public:
    progress(const char* name, std::uint64_t total) : name_(name), total_(total) { show(0); }

    void show(std::uint64_t done) {
        const time_point now = chime::clock::now();
        if (!on_terminal() || (now < next_ && done < total_)) return;
        next_ = now + 40ms;
        constexpr std::size_t width = 40;
        const std::uint64_t percent = total_ == 0 ? 100 : std::min(done, total_) * 100 / total_;
        const std::size_t filled = percent * width / 100;
        std::printf("\r  %-9s [%s%s] %3u %%", name_, std::string(filled, '#').c_str(),
                    std::string(width - filled, '.').c_str(), static_cast<unsigned>(percent));
        std::fflush(stdout);
    }

    void finish(std::uint64_t done) const {
        if (on_terminal()) std::printf("\r\033[K");
        std::printf("  %-9s %s\n", name_, done >= total_ ? "done" : "stopped");
        std::fflush(stdout);
    }

 private:
    static bool on_terminal() {
        static const bool answer = ::isatty(STDOUT_FILENO) == 1;
        return answer;
    }

    const char* name_;
    std::uint64_t total_;
    time_point next_{};
};

/// What a kind of operation took, all in all.
struct cost {
    std::uint64_t operations = 0;
    nanoseconds spent{};

    [[nodiscard]] double each_ns() const {
        return operations == 0 ? 0.0 : static_cast<double>(spent.count()) / static_cast<double>(operations);
    }
};

/// The run: a wheel of numbers, and beside it what the wheel is expected to say about each.
class demonstration {
 public:
    explicit demonstration(const options& chosen)
        : timers_(chosen.timers),
          random_(chosen.seed),
          start_(chime::clock::now()),
          // Arming must be over before the first deadline, or the first timers are late by no fault of the wheel.
          window_begin_(start_ + 50ms + nanoseconds{1500} * timers_),
          window_(std::clamp<nanoseconds>(nanoseconds{4000} * timers_, 100ms, 4s)),
          wheel_({.start = start_, .max_timers = timers_}) {
        deadlines_.reserve(timers_);
        for (std::uint32_t number = 0; number < timers_; ++number) deadlines_.push_back(random_deadline());
        ids_.resize(timers_);
        shuffled_.resize(timers_);
        std::iota(shuffled_.begin(), shuffled_.end(), 0U);
        std::shuffle(shuffled_.begin(), shuffled_.end(), random_);
        lateness_.reserve(timers_);
    }

    void run() {
        arming_ = in_batches("arm", timers_,
                             [&](std::uint32_t number) { ids_[number] = wheel_.arm(deadlines_[number], number); });
        peak_bytes_ = wheel_.memory();
        const std::uint32_t armed = static_cast<std::uint32_t>(arming_.operations);

        // A quarter gets another deadline, earlier or later; then half of all are cancelled, as most timeouts are.
        std::vector<time_point> moved(timers_ / 4);
        for (time_point& deadline : moved) deadline = random_deadline();
        postponing_ = in_batches("postpone", armed / 4, [&](std::uint32_t turn) {
            const std::uint32_t number = shuffled_[turn];
            deadlines_[number] = moved[turn];
            if (!wheel_.postpone(ids_[number], moved[turn])) ++refused_;
        });
        std::shuffle(shuffled_.begin(), shuffled_.end(), random_);
        cancelling_ = in_batches("cancel", armed / 2, [&](std::uint32_t turn) {
            const std::optional<std::uint32_t> value = wheel_.cancel(ids_[shuffled_[turn]]);
            if (value != shuffled_[turn]) ++refused_;
        });
        fire_all();
    }

    /// Prints what happened; true: everything that was promised was kept.
    bool report() {
        const chime::wheel_stats stats = wheel_.stats();
        const bool balanced = stats.armed == stats.fired + stats.cancelled + stats.pending &&
                              stats.armed == arming_.operations && stats.fired == firing_.operations && refused_ == 0;
        const nanoseconds least = lateness_.empty() ? 0ns : *std::min_element(lateness_.begin(), lateness_.end());

        std::printf("\n");
        line("armed", stats.armed, arming_);
        line("postponed", stats.postponed, postponing_);
        line("cancelled", stats.cancelled, cancelling_);
        line("fired", stats.fired, firing_);
        std::printf("  %-10s %12llu\n\n", "pending", static_cast<unsigned long long>(stats.pending));
        std::printf("  %-10s armed = fired + cancelled + pending: %s\n", "ledger", balanced ? "holds" : "BROKEN");
        std::printf("  %-10s by deadline, then by arming: %s\n", "order", disorder_ == 0 ? "holds" : "BROKEN");
        if (!lateness_.empty()) {
            std::printf("  %-10s earliest %.1f us, median %.1f us, latest %.1f us: %s\n", "lateness",
                        microseconds(least), microseconds(median_lateness()),
                        microseconds(*std::max_element(lateness_.begin(), lateness_.end())),
                        least >= 0ns ? "never early" : "EARLY");
        }
        if (stats.armed > 0) {
            std::printf("  %-10s %.1f bytes a timer\n", "memory",
                        static_cast<double>(peak_bytes_) / static_cast<double>(stats.armed));
        }
        return balanced && disorder_ == 0 && least >= 0ns;
    }

 private:
    static double microseconds(nanoseconds time) { return static_cast<double>(time.count()) / 1000.0; }

    static void line(const char* name, std::uint64_t count, const cost& spent) {
        std::printf("  %-10s %12llu %8.1f ns each\n", name, static_cast<unsigned long long>(count), spent.each_ns());
    }

    time_point random_deadline() {
        return window_begin_ + nanoseconds{std::uniform_int_distribution<std::int64_t>(0, window_.count())(random_)};
    }

    /// Calls operation(0 … count − 1) and takes the time of the calls, without what is shown in between.
    template <class Operation>
    static cost in_batches(const char* name, std::uint32_t count, Operation operation) {
        constexpr std::uint32_t batch = 1 << 14;
        progress bar(name, count);
        cost total;
        for (std::uint32_t from = 0; from < count && interrupted == 0; from += batch) {
            const std::uint32_t to = std::min(count, from + batch);
            const time_point before = chime::clock::now();
            for (std::uint32_t turn = from; turn < to; ++turn) operation(turn);
            total.spent += chime::clock::now() - before;
            total.operations = to;
            bar.show(to);
        }
        bar.finish(total.operations);
        return total;
    }

    /// The loop of somebody who has nothing else to do: fire what is due, sleep until the next deadline.
    void fire_all() {
        const std::uint64_t expected = wheel_.size();
        progress bar("fire", expected);
        while (!wheel_.empty() && interrupted == 0) {
            const time_point now = chime::clock::now();
            firing_.operations +=
                wheel_.advance(now, [&](std::uint32_t number, time_point deadline) { witness(number, deadline, now); });
            const time_point after = chime::clock::now();
            firing_.spent += after - now;
            bar.show(firing_.operations);
            // No longer than the bar stands still, so that Ctrl-C is answered soon.
            if (const auto next = wheel_.next_deadline()) std::this_thread::sleep_until(std::min(*next, after + 40ms));
        }
        bar.finish(firing_.operations);
    }

    void witness(std::uint32_t number, time_point deadline, time_point now) {
        const bool in_order = deadline > last_deadline_ || (deadline == last_deadline_ && number > last_number_);
        if (deadline != deadlines_[number] || (!lateness_.empty() && !in_order)) ++disorder_;
        last_deadline_ = deadline;
        last_number_ = number;
        lateness_.push_back(now - deadline);
    }

    [[nodiscard]] nanoseconds median_lateness() {
        const auto middle = lateness_.begin() + static_cast<std::ptrdiff_t>(lateness_.size() / 2);
        std::nth_element(lateness_.begin(), middle, lateness_.end());
        return *middle;
    }

    std::uint32_t timers_;
    std::mt19937_64 random_;
    time_point start_;
    time_point window_begin_;
    nanoseconds window_;
    chime::timer_wheel<std::uint32_t> wheel_;

    std::vector<time_point> deadlines_;  // By number: what the wheel was last told.
    std::vector<chime::timer_id> ids_;
    std::vector<std::uint32_t> shuffled_;
    std::vector<nanoseconds> lateness_;
    time_point last_deadline_{};
    std::uint32_t last_number_ = 0;

    cost arming_;
    cost postponing_;
    cost cancelling_;
    cost firing_;
    std::uint64_t refused_ = 0;
    std::uint64_t disorder_ = 0;
    std::size_t peak_bytes_ = 0;
};

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// Empty if `chosen` has been filled in; otherwise what is wrong with the arguments.
std::string parse(int count, char** arguments, options& chosen) {
    for (int at = 1; at < count; ++at) {
        const std::string_view name = arguments[at];
        if (name == "--help") {
            chosen.help = true;
            return {};
        }
        if (name != "--timers" && name != "--seed") return "there is no option '" + std::string(name) + "'";
        if (++at == count) return std::string(name) + " needs a number";
        const std::string_view text = arguments[at];
        if (name == "--timers") {
            const auto timers = parse_number<std::uint32_t>(text);
            if (!timers || *timers < 1 || *timers > most_timers) {
                return "--timers is '" + std::string(text) + "'; give a number from 1 to " +
                       std::to_string(most_timers);
            }
            chosen.timers = *timers;
        } else {
            const auto seed = parse_number<std::uint64_t>(text);
            if (!seed) return "--seed is '" + std::string(text) + "'; give a number from 0 to 18446744073709551615";
            chosen.seed = *seed;
        }
    }
    return {};
}

int run(const options& chosen) {
    std::printf("chime %.*s: %u timers, seed %llu\n\n", static_cast<int>(chime::version().size()),
                chime::version().data(), chosen.timers, static_cast<unsigned long long>(chosen.seed));
    std::signal(SIGINT, [](int) { interrupted = 1; });
    demonstration demo(chosen);
    demo.run();
    const bool kept = demo.report();
    if (interrupted != 0) std::printf("\n  stopped by Ctrl-C: these are partial results\n");
    if (!kept) return 1;
    return interrupted != 0 ? 130 : 0;
}

}  // namespace

int main(int count, char** arguments) {
    options chosen;
    if (const std::string wrong = parse(count, arguments, chosen); !wrong.empty()) {
        std::fprintf(stderr, "million_timers: %s\n%s\n", wrong.c_str(), usage);
        return 2;
    }
    if (chosen.help) {
        std::printf(
            "%s\n\n"
            "Arms N timers (1000000 unless told, at most %u) in a chime::timer_wheel, postpones a quarter,\n"
            "cancels half and fires the rest by the real clock, then says what it cost and whether every promise\n"
            "was kept. The same seed (1 unless told) draws the same deadlines. Ctrl-C stops with partial results.\n",
            usage, most_timers);
        return 0;
    }
    try {
        return run(chosen);
    } catch (const std::bad_alloc&) {
        std::fprintf(stderr, "million_timers: no memory for %u timers; try fewer with --timers\n", chosen.timers);
        return 1;
    }
}
