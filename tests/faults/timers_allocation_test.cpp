// SPDX-License-Identifier: MIT
//
// Arming, sleeping, spawning, postponing while memory runs out: refused with std::bad_alloc, nothing changed, and the same
// once more succeeds.

#include "faults/injection.hpp"
#include "faults/wreckage.hpp"
#include "support/ledger.hpp"

#include <chime/cancel.hpp>
#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/testing.hpp>
#include <chime/timers.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace chime::test {
namespace {

using namespace std::chrono_literals;

int living_payloads = 0;
int runs_of_payloads = 0;

/// A closure of a size to choose, and how many of them there are.
template <std::size_t Bytes>
class payload {
 public:
    payload() { ++living_payloads; }
    payload(const payload&) { ++living_payloads; }
    payload(payload&&) noexcept { ++living_payloads; }
    payload& operator=(const payload&) = delete;
    ~payload() { --living_payloads; }
    void operator()() const { ++runs_of_payloads; }

 private:
    std::array<char, Bytes> room_{};
};

// Larger than what is pooled, so that every one of them is a request for memory.
constexpr std::size_t large = 2'000;

template <std::size_t Bytes>
task<int> sleep_with(cancel_token token = {}) {
    const payload<Bytes> kept;
    auto pause = sleep_for(1s, std::move(token));
    co_await pause;
    kept();
    co_return 7;
}

struct request {
    std::string name;
    std::function<void(io_context&, const cancel_token&)> make;
};

template <std::size_t Bytes>
void add_requests(std::vector<request>& all) {
    const std::string size = std::to_string(Bytes) + " bytes";
    const auto add = [&](const char* name, auto make) { all.push_back({name + size, make}); };
    add("after, ", [](io_context& home, const cancel_token&) { home.timers().after(1s, payload<Bytes>()); });
    add("at, ",
        [](io_context& home, const cancel_token&) { home.timers().at(home.timers().now() + 1s, payload<Bytes>()); });
    add("try_after, ", [](io_context& home, const cancel_token&) {
        if (!home.timers().try_after(1s, payload<Bytes>())) throw std::bad_alloc();
    });
    add("every, ", [](io_context& home, const cancel_token& token) {
        home.timers().every(1s, missed_ticks::skip, payload<Bytes>(), token);
    });
    add("after with a token, ",
        [](io_context& home, const cancel_token& token) { home.timers().after(1s, payload<Bytes>(), token); });
    add("post, ", [](io_context& home, const cancel_token&) { home.post(payload<Bytes>()); });
    add("spawn, ", [](io_context& home, const cancel_token&) { spawn(home, sleep_with<Bytes>()).detach(); });
    add("spawn_detached with a token, ",
        [](io_context& home, const cancel_token& token) { spawn_detached(home, sleep_with<Bytes>(token)); });
}

std::vector<request> all_requests() {
    std::vector<request> all;
    add_requests<1>(all);
    add_requests<200>(all);
    add_requests<large>(all);
    return all;
}

/// A fresh context for every attempt, so that there is something to ask for.
class attempts {
 public:
    explicit attempts(const request& wanted, bool is_inside) : wanted_(wanted), is_inside_(is_inside) { renew(); }

    std::uint64_t fail_each(failing_point& kind) {
        return fail_at_each(
            kind, [this] { make(); }, [this](bool is_through) { look(is_through); });
    }

 private:
    void renew() {
        context_.reset();
        EXPECT_EQ(living_payloads, 0);
        source_ = {};
        context_.emplace(io_context_config{.max_timers = 100'000, .max_tasks = 100'000});
        token_ = source_.token();
        if (is_inside_) (*context_)->post([this] { wanted_.make(**context_, token_); });
    }

    void make() {
        if (is_inside_) {
            (*context_)->poll();
        } else {
            wanted_.make(**context_, token_);
        }
    }

    void look(bool is_through) {
        if (!is_through) {
            check_ledger(**context_);
            const timer_stats sums = (*context_)->timers().stats();
            EXPECT_EQ(living_payloads, 0) << "what was refused is destroyed";
            EXPECT_EQ(sums.pending, 0U);
            EXPECT_EQ(sums.tasks, 0U);
            // The same once more.
            (*context_)->post([this] { wanted_.make(**context_, token_); });
            context_->settle();
        }
        runs_of_payloads = 0;
        context_->advance(1s);
        EXPECT_EQ(runs_of_payloads, wanted_.name.starts_with("post") ? runs_of_payloads : 1);
        source_.request_cancel();
        context_->run();
        EXPECT_EQ(living_payloads, 0);
        check_ledger_at_rest(**context_);
        renew();
    }

    const request& wanted_;
    bool is_inside_;
    cancel_source source_;
    cancel_token token_;
    std::optional<testing::virtual_context> context_;
};

TEST(without_memory, every_request_is_refused_changes_nothing_and_succeeds_later) {
    for (const bool is_inside : {false, true}) {
        std::uint64_t refused = 0;
        for (const request& each : all_requests()) {
            SCOPED_TRACE(each.name + (is_inside ? " inside of the loop" : " from outside"));
            const wreckage before;
            std::uint64_t large_ones = 0;
            for (failing_point* const kind : {&faults::allocations, &faults::commits}) {
                large_ones += attempts(each, is_inside).fail_each(*kind);
            }
            EXPECT_GT(large_ones, 0U);
            refused += large_ones;
            before.expect_nothing_more();
            if (HasFailure()) return;
        }
        EXPECT_GT(refused, 50U);
    }
}

TEST(without_memory, a_sleep_throws_where_it_is_awaited_and_the_task_goes_on) {
    // The wheel has room for some tickets from the beginning: so many sleepers that it has to grow.
    constexpr int sleepers = 3'000;
    std::optional<testing::virtual_context> context;
    int refused = 0;
    int slept = 0;
    const auto nap = [&]() -> task<> {
        for (;;) {
            bool is_refused = false;
            try {
                auto pause = sleep_for(1h);
                co_await pause;
            } catch (const std::bad_alloc&) {
                is_refused = true;
            }
            if (!is_refused) break;
            ++refused;
            faults::allocations.recover();
        }
        ++slept;
    };
    std::uint64_t requests = 0;
    for (std::uint64_t successes = 0;; ++successes) {
        slept = 0;
        context.emplace();
        for (int count = 0; count < sleepers; ++count) spawn_detached(**context, nap());
        const int before = refused;
        std::uint64_t thrown = 0;
        faults::allocations.fail_after(successes);
        for (;;) {
            try {
                context->settle();
                break;
            } catch (const std::bad_alloc&) {  // From the loop itself.
                ++thrown;
                faults::allocations.recover();
            }
        }
        faults::allocations.recover();
        EXPECT_EQ((**context).timers().stats().pending, static_cast<std::uint64_t>(sleepers));
        context->run();
        EXPECT_EQ(slept, sleepers);
        check_ledger_at_rest(**context);
        if (faults::allocations.refusals() == 0) break;
        EXPECT_TRUE(refused > before || thrown != 0);
        ++requests;
        ASSERT_LT(successes, 1'000U);
    }
    EXPECT_GT(requests, 0U);
    EXPECT_GT(refused, 0);
}

TEST(without_memory, a_growing_wheel_keeps_what_it_has) {
    constexpr std::uint64_t wanted = 20'000;
    for (const bool is_inside : {false, true}) {
        for (failing_point* const kind : {&faults::allocations, &faults::commits}) {
            for (std::uint64_t successes = 0;; ++successes) {
                ASSERT_LT(successes, 10'000U);
                testing::virtual_context context;
                std::uint64_t armed = 0;
                std::uint64_t fired = 0;
                const auto arm_all = [&] {
                    while (armed < wanted) {
                        // Spread over every level.
                        context->timers().after(1ms * (armed * armed % 100'000'007), [&] { ++fired; });
                        ++armed;
                    }
                };
                if (is_inside) context->post(arm_all);
                kind->fail_after(successes);
                try {
                    is_inside ? static_cast<void>(context->poll()) : arm_all();
                } catch (const std::bad_alloc&) {}
                for (int polls = 0; polls < 3; ++polls) {
                    try {
                        context->poll();  // What came from outside goes into the wheel.
                    } catch (const std::bad_alloc&) {}
                }
                kind->recover();
                const bool is_over = kind->refusals() == 0;
                check_ledger(*context);
                arm_all();
                context.run();
                EXPECT_EQ(fired, wanted);
                check_ledger_at_rest(*context);
                if (is_over || HasFailure()) break;
            }
        }
    }
}

TEST(without_memory, a_reserve_of_free_records_that_cannot_grow_loses_none) {
    // More than the first piece of memory has room for.
    constexpr std::size_t count = 600'000;
    io_context context({.max_timers = count + 1});
    timers& all = context.timers();
    std::vector<timer_handle> armed(count);
    const auto arm_all = [&] {
        for (timer_handle& each : armed) each = all.after(1h, [] {});
    };
    const auto cancel_all = [&] {
        for (const timer_handle& each : armed) ASSERT_EQ(all.cancel(each), cancel_result::cancelled);
    };
    for (const bool has_memory : {false, true, true}) {
        context.post(arm_all);
        context.poll();
        EXPECT_EQ(all.stats().pending, count);
        context.post(cancel_all);
        if (!has_memory) faults::commits.fail_after(0);
        context.poll();
        faults::commits.recover();
        if (!has_memory) {
            EXPECT_GT(faults::commits.refusals(), 0U);
        }
        EXPECT_EQ(all.stats().pending, 0U);
    }
    check_ledger_at_rest(context);
}

TEST(without_memory, postponing_is_refused_and_the_old_deadline_holds) {
    constexpr std::size_t count = 2'000;
    for (std::uint64_t successes = 0;; ++successes) {
        ASSERT_LT(successes, 1'000U);
        testing::virtual_context context;
        std::vector<timer_handle> armed;
        std::vector<duration> expected(count, 10h);
        std::size_t fired = 0;
        context->post([&] {
            for (std::size_t number = 0; number < count; ++number) {
                armed.push_back(context->timers().after(10h, [&, number] {
                    ++fired;
                    EXPECT_EQ(context.now().time_since_epoch(), expected[number]);
                }));
            }
        });
        context.settle();
        context->post([&] {
            for (std::size_t number = 0; number < count; ++number) {
                const auto earlier = 1h + std::chrono::milliseconds{number};
                if (context->timers().postpone(armed[number], earlier)) expected[number] = earlier;
            }
        });
        faults::allocations.fail_after(successes);
        try {
            context->poll();
        } catch (const std::bad_alloc&) {}
        faults::allocations.recover();
        const bool is_over = faults::allocations.refusals() == 0;
        context.run();
        EXPECT_EQ(fired, count);
        check_ledger_at_rest(*context);
        if (is_over || HasFailure()) break;
    }
}

}  // namespace
}  // namespace chime::test
