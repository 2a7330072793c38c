// SPDX-License-Identifier: MIT
#include "shim/engine/execution.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <utility>

#include <malloc.h>
#include <sys/single_threaded.h>

namespace chime::shim {

namespace {

/// Each leaves behind what its threads had.
constexpr unsigned most_wrong_guesses = 6000;
unsigned wrong_guesses = 0;

}  // namespace

execution* execution::only_ = nullptr;
bool execution::is_inside_ = false;
execution::sleep_watch execution::watch{};

memory& execution::words() {
    static memory only;
    return only;
}

races& execution::plain() {
    static races only;
    return only;
}

std::vector<std::unique_ptr<fiber>>& execution::all_fibers() {
    static std::vector<std::unique_ptr<fiber>> all;
    return all;
}

// --- From outside.

void execution::crashed(int signal) {
    if (only_ == nullptr || only_->running_ == nullptr) {
        std::signal(signal, SIG_DFL);
        std::raise(signal);
        return;
    }
    is_inside_ = false;
    only_->fail(std::string("it crashes: ") + ::strsignal(signal));
}

void execution::terminated() {
    if (only_ == nullptr || only_->running_ == nullptr) std::abort();
    is_inside_ = false;
    only_->fail("it calls std::terminate");
}

outcome execution::run(const std::function<void()>& body, strategy& decides, const options& wanted) {
    static const bool is_prepared = [] {
        // The C++ library would count references without atomics, because there is one thread.
        __libc_single_threaded = 0;
        // Memory that is given back is got again at the same addresses, and costs no page faults.
        ::mallopt(M_MMAP_THRESHOLD, 256 << 20);
        ::mallopt(M_TRIM_THRESHOLD, 512 << 20);
        static std::byte stack[64 << 10];
        stack_t alternate{};
        alternate.ss_sp = stack;
        alternate.ss_size = sizeof stack;
        ::sigaltstack(&alternate, nullptr);
        struct sigaction action {};
        action.sa_handler = crashed;
        action.sa_flags = SA_ONSTACK | SA_NODEFER;
        for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::sigaction(signal, &action, nullptr);
        return true;
    }();
    static_cast<void>(is_prepared);
    static thread_image outside;

    execution mine(decides, wanted);
    words().begin();
    plain().begin();
    only_ = &mine;
    const std::terminate_handler before = std::set_terminate(terminated);
    outside.save();
    mine.start(body, "main");
    mine.running_ = mine.fibers_[0];
    mine.running_->image.restore();
    mine.is_inside_ = true;
    boost::context::detail::jump_fcontext(mine.running_->context, nullptr);
    mine.is_inside_ = false;
    outside.restore();
    std::set_terminate(before);
    only_ = nullptr;
    words().end();
    return std::move(mine.outcome_);
}

// --- Threads.

unsigned execution::start(std::function<void()> body, std::string name) {
    const pause own;
    if (count_ == most_threads) fail("more threads than the engine has room for");
    auto& all = all_fibers();
    if (all.size() == count_) all.push_back(std::make_unique<fiber>());
    fiber& added = *all[count_];
    added.number = count_;
    added.name = name.empty() ? "thread " + std::to_string(count_) : std::move(name);
    added.now = fiber::state::ready;
    added.body = std::move(body);
    added.view = {};
    added.view.thread = count_;
    if (running_ != nullptr) {
        running_->view.tick();
        added.view.clock = running_->view.clock;
    }
    added.view.tick();
    added.steps = 0;
    added.last = nullptr;
    added.has_looked = added.sees_newest = added.is_near = false;
    added.next_wake_is_lost = nullptr;
    added.sleeps_as = {};
    added.at_end.clear();
    added.image.reset();
    added.context = boost::context::detail::make_fcontext(added.stack.top(), fiber_stack::bytes, enter);
    fibers_[count_] = &added;
    return count_++;
}

void execution::enter(boost::context::detail::transfer_t from) {
    execution& mine = *only_;
    if (mine.previous_ != nullptr) {
        mine.previous_->context = from.fctx;
    } else {
        mine.outside_ = from.fctx;
    }
    is_inside_ = true;
    try {
        mine.running_->body();
    } catch (const std::exception& thrown) {
        mine.fail(std::string("an exception leaves a thread: ") + thrown.what());
    } catch (...) {
        mine.fail("an exception leaves a thread");
    }
    mine.end_fiber();
}

void execution::end_fiber() {
    auto& at_end = running_->at_end;
    while (!at_end.empty()) {
        const fiber::destructor last = at_end.back();
        at_end.pop_back();
        last.destroy(last.object);
    }
    {
        const pause own;
        running_->body = nullptr;
    }
    running_->view.tick();
    running_->now = fiber::state::finished;
    wake(running_, most_threads);
    const bool all_finished = std::all_of(fibers_.begin(), fibers_.begin() + count_,
                                          [](const fiber* each) { return each->now == fiber::state::finished; });
    if (all_finished) leave();
    let_others_run();
    std::abort();
}

void execution::join(unsigned thread) {
    step();
    fiber& other = *fibers_[thread];
    while (other.now != fiber::state::finished) block(&other, "the end of a thread");
    running_->view.clock.join(other.view.clock);
    joined_ += running_->number == 0;
    if (is_traced()) note("joins " + other.name);
}

// --- Who runs.

void execution::approach(site& where, const void* address) {
    const pause own;
    // What lies in one line belongs together, most of the time.
    constexpr unsigned line_shift = 6;
    const std::uintptr_t line = reinterpret_cast<std::uintptr_t>(address) >> line_shift;
    const auto known = cared_for_.begin() + static_cast<std::ptrdiff_t>(cared_for_count_);
    const bool is_known = std::find(cared_for_.begin(), known, line) != known;
    const bool is_cared_for = decides_.cares_for(where);
    if (is_cared_for && !is_known && cared_for_count_ < cared_for_.size()) cared_for_[cared_for_count_++] = line;
    running_->last = &where;
    running_->is_near = is_cared_for || is_known || where.is_beside_focus;
    if (is_known && has_focus()) where.is_beside_focus = true;
}

void execution::step() {
    // Whoever tries again and again, until somebody else has done something, is interrupted in the end.
    choose(++steps_in_a_row_ % most_steps_in_a_row != 0);
}

void execution::yield() {
    choose(false);
    running_->view.tick();
}

bool execution::block(const void* what, const char* how, time_point deadline, bool may_wake_falsely) {
    fiber& mine = *running_;
    mine.waits_for = what;
    mine.waits_how = how;
    mine.deadline = deadline;
    mine.may_wake_falsely = may_wake_falsely;
    mine.has_timed_out = false;
    if (mine.sleeps_as.worker != nullptr && !has_lost_wake_ && watch.falls_asleep != nullptr) {
        watch.falls_asleep(*this, mine);
    }
    mine.now = fiber::state::blocked;
    if (is_traced()) note(std::string("waits for ") + how);
    let_others_run();
    mine.waits_for = nullptr;
    return mine.has_timed_out;
}

unsigned execution::wake(const void* what, unsigned most) {
    unsigned woken = 0;
    for (unsigned thread = 0; thread < count_ && woken < most; ++thread) {
        fiber& each = *fibers_[thread];
        if (each.now != fiber::state::blocked || each.waits_for != what) continue;
        each.now = fiber::state::ready;
        ++woken;
    }
    return woken;
}

bool execution::is_awaited(const void* what) const noexcept {
    return std::any_of(fibers_.begin(), fibers_.begin() + count_, [&](const fiber* each) {
        return each->now == fiber::state::blocked && each->waits_for == what;
    });
}

bool execution::loses_wake() {
    bool* const noted = std::exchange(running_->next_wake_is_lost, nullptr);
    if (noted == nullptr) return false;
    *noted = has_lost_wake_ = true;
    if (is_traced()) note("loses a wake-up");
    return true;
}

void execution::interrupt_all() {
    for (unsigned thread = 0; thread < count_; ++thread) {
        fiber& each = *fibers_[thread];
        if (each.now == fiber::state::blocked && each.may_wake_falsely) each.now = fiber::state::ready;
    }
    if (is_traced()) note("interrupts all who sleep");
}

bool execution::advance_time() {
    time_point first = never;
    for (unsigned thread = 0; thread < count_; ++thread) {
        if (fibers_[thread]->now == fiber::state::blocked) first = std::min(first, fibers_[thread]->deadline);
    }
    if (first == never) return false;
    now_ = std::max(now_, first);
    for (unsigned thread = 0; thread < count_; ++thread) {
        fiber& each = *fibers_[thread];
        if (each.now != fiber::state::blocked || each.deadline > now_) continue;
        each.now = fiber::state::ready;
        each.has_timed_out = true;
    }
    if (is_traced()) add_to_trace("time goes on to " + std::to_string(now_.time_since_epoch().count()) + " ns", "");
    return true;
}

void execution::sound_false_alarm(choice_point where) {
    sleepers_.clear();
    for (unsigned thread = 0; thread < count_; ++thread) {
        const fiber& each = *fibers_[thread];
        if (each.now == fiber::state::blocked && each.may_wake_falsely) sleepers_.push_back(thread);
    }
    if (sleepers_.empty()) return;
    const unsigned chosen = decides_.pick_false_alarm(where, sleepers_);
    if (chosen == strategy::nobody) return;
    outcome_.taken.push_back({where, deviation::kind::false_alarm, chosen});
    fibers_[chosen]->now = fiber::state::ready;
    if (is_traced()) add_to_trace("false alarm for " + fibers_[chosen]->name, "");
}

/// The current thread goes on, or somebody else does.
void execution::choose(bool may_continue) {
    const pause own;
    if (++outcome_.steps > options_.most_steps) fail("it does not come to an end:" + where_all_stand());
    here_ = {running_->number, running_->steps++};
    sound_false_alarm(here_);
    ready_.clear();
    for (unsigned thread = 0; thread < count_; ++thread) {
        if (fibers_[thread]->now == fiber::state::ready) ready_.push_back(thread);
    }
    if (ready_.size() == 1) {
        if (may_continue) return;
        // Whoever waits for the others while they sleep sees what there is to see, and then waits for time to go on.
        if (running_->has_looked && advance_time()) running_->has_looked = false;
        running_->has_looked = running_->sees_newest = true;
        return;
    }
    if (!may_continue) running_->has_looked = false;
    ++outcome_.decisions;
    const candidates among{ready_, running_->number, may_continue, running_->is_near};
    const unsigned next = decides_.pick_thread(here_, among);
    if (next != usual_thread(among)) outcome_.taken.push_back({here_, deviation::kind::switched, next});
    if (next != running_->number) switch_to(*fibers_[next]);
}

/// The current thread cannot go on.
void execution::let_others_run() {
    const pause own;
    here_ = {running_->number, running_->steps++};
    for (;;) {
        ready_.clear();
        for (unsigned thread = 0; thread < count_; ++thread) {
            if (fibers_[thread]->now == fiber::state::ready) ready_.push_back(thread);
        }
        if (!ready_.empty()) break;
        look_after_sleepers();
        if (!advance_time()) fail("nobody can go on:" + where_all_stand());
    }
    unsigned next = ready_.front();
    if (ready_.size() > 1) {
        ++outcome_.decisions;
        const candidates among{ready_, running_->number, false, false, true};
        next = decides_.pick_thread(here_, among);
        if (next != usual_thread(among)) outcome_.taken.push_back({here_, deviation::kind::switched, next});
    }
    if (next != running_->number) switch_to(*fibers_[next]);
}

void execution::look_after_sleepers() {
    if (has_lost_wake_ || watch.sleeps_on == nullptr) return;
    for (unsigned thread = 0; thread < count_; ++thread) {
        const fiber& each = *fibers_[thread];
        if (each.now == fiber::state::blocked && each.sleeps_as.worker != nullptr) watch.sleeps_on(*this, each);
    }
}

void execution::switch_to(fiber& next) {
    fiber& mine = *running_;
    mine.image.save();
    next.image.restore();
    previous_ = &mine;
    running_ = &next;
    steps_in_a_row_ = 0;
    const auto from = boost::context::detail::jump_fcontext(next.context, nullptr);
    // Somebody has come back to us.
    previous_->context = from.fctx;
}

void execution::leave() {
    is_inside_ = false;
    boost::context::detail::jump_fcontext(outside_, nullptr);
    std::abort();
}

void execution::fail(std::string message) {
    is_inside_ = false;
    // What follows from a wrong guess is nothing that can happen.
    outcome_.has_failed = words().is_sound();
    outcome_.has_foreseen = words().has_foreseen();
    if (!outcome_.has_failed) ++wrong_guesses;
    outcome_.message = std::move(message);
    if (running_ == nullptr) std::abort();
    note("FAILS: " + outcome_.message);
    leave();
}

// --- Choices.

unsigned execution::pick_value(void* self, unsigned count) {
    execution& mine = *static_cast<execution*>(self);
    const pause own;
    if (std::exchange(mine.running_->sees_newest, false)) return 0;
    const choice_point where{mine.running_->number, mine.running_->steps++};
    const unsigned chosen = mine.decides_.pick_value(where, count, mine.running_->is_near);
    if (chosen != 0) {
        mine.outcome_.taken.push_back({where, deviation::kind::stale, chosen});
        mine.running_->has_looked = false;
    }
    return chosen;
}

unsigned execution::foresees(const void* address, unsigned bytes) {
    if (wrong_guesses > most_wrong_guesses) return 0;
    const pause own;
    const unsigned count = words().count_guesses(address, bytes);
    if (count == 0) return 0;
    const choice_point where{running_->number, running_->steps++};
    return decides_.foresees(where, count);
}

void execution::remember(const void* address, std::uint64_t value) {
    if (does_any_foresee()) words().remember(address, value);
}

bool execution::fails_spuriously() {
    const pause own;
    const choice_point where{running_->number, running_->steps++};
    const bool does = decides_.fails_spuriously(where);
    if (does) outcome_.taken.push_back({where, deviation::kind::spurious, 0});
    return does;
}

}  // namespace chime::shim
