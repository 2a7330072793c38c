// SPDX-License-Identifier: MIT
#pragma once

#include "support/contender.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>
#include <boost/version.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace chime_bench {

/// boost::asio::steady_timer on a default io_context, each with a pending async_wait.
///
/// Cancelling and moving a timer complete its wait with operation_aborted; those handlers run in the next turn and
/// are counted, as they are in every program.
///
/// Asio's timers are objects. `boost.asio`, the reference of all ratios, keeps them side by side and gives each a new
/// expiry, which is the best that a program can do; no other contender gets memory for an arm either. Mostly, though,
/// a timer is part of the request or the coroutine that it guards, and is made and destroyed with it: that is
/// `boost.asio.fresh`.
template <bool Fresh>
class boost_asio_timers {
 public:
    static constexpr std::string_view name = Fresh ? "boost.asio.fresh" : "boost.asio";
    static constexpr std::string_view clock_reads = "per arm";
    static constexpr precision keeps = precision::by_deadline;
    static std::string version() {
        return std::to_string(BOOST_VERSION / 100'000) + '.' + std::to_string(BOOST_VERSION / 100 % 1'000);
    }

    boost_asio_timers(std::size_t count, firing_log& log) : log_(log), slots_(count) {
        if constexpr (!Fresh) {
            for (timer_slot& it : slots_) it.timer.emplace(context_);
        }
    }

    void arm(slot_index slot, std::chrono::nanoseconds delay) {
        timer_slot& it = slots_[slot];
        if constexpr (Fresh) {
            it.timer = std::make_unique<boost::asio::steady_timer>(context_, delay);
        } else {
            it.timer->expires_after(delay);
        }
        wait(it, slot);
    }

    bool cancel(slot_index slot) {
        timer_slot& it = slots_[slot];
        if (!it.pending) return false;
        it.pending = false;
        aborts_expected_ += it.timer->cancel();
        if constexpr (Fresh) it.timer.reset();
        return true;
    }

    bool postpone(slot_index slot, std::chrono::nanoseconds delay) {
        timer_slot& it = slots_[slot];
        if (!it.pending) return false;
        aborts_expected_ += it.timer->expires_after(delay);
        wait(it, slot);
        return true;
    }

    void prefetch_handle(slot_index slot) const { __builtin_prefetch(&slots_[slot]); }
    void prefetch_timer(slot_index) const {}  // Its place in the heap is not ours to see.

    void turn() { context_.poll(); }
    void wait() { context_.run_one(); }

    template <class Beat>
    void run_beating(Beat beat) {
        bool is_going = true;
        post_beat(beat, is_going);
        while (is_going) context_.run_one();
    }

    [[nodiscard]] bool is_pending(slot_index slot) const { return slots_[slot].pending; }

    [[nodiscard]] std::string complaint() const {
        if (aborts_seen_ == aborts_expected_) return {};
        return std::to_string(aborts_expected_) + " waits were cancelled, but " + std::to_string(aborts_seen_) +
               " handlers were told";
    }

 private:
    struct timer_slot {
        bool pending = false;
        std::conditional_t<Fresh, std::unique_ptr<boost::asio::steady_timer>, std::optional<boost::asio::steady_timer>>
            timer;
    };

    template <class Beat>
    void post_beat(Beat& beat, bool& is_going) {
        boost::asio::post(context_, [this, &beat, &is_going] {
            is_going = beat();
            if (is_going) post_beat(beat, is_going);
        });
    }

    void wait(timer_slot& it, slot_index slot) {
        it.pending = true;
        it.timer->async_wait([this, slot](const boost::system::error_code& error) {
            if (error) {
                ++aborts_seen_;
                return;
            }
            slots_[slot].pending = false;
            log_.note(slot);
        });
    }

    firing_log& log_;
    std::uint64_t aborts_expected_ = 0;
    std::uint64_t aborts_seen_ = 0;
    boost::asio::io_context context_;
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_{context_.get_executor()};
    std::vector<timer_slot> slots_;
};

using boost_asio = boost_asio_timers<false>;
using boost_asio_fresh = boost_asio_timers<true>;

}  // namespace chime_bench
