// SPDX-License-Identifier: MIT
#include "runtime/runtime.hpp"

#include <algorithm>
#include <string>
#include <system_error>

// Workers that come and go. What is refused is found out once, as a code; who throws adds the words.

namespace chime::inline v0 {

std::variant<worker_id, errc> runtime::state::add_member() {
    const base::lock_guard lock(mutex);
    if (is_closed) return errc::stopped;
    detail::worker* const seated = members.size() < most_workers ? crew.add_worker() : nullptr;
    if (seated == nullptr) return errc::too_many_workers;
    return start_member(*seated).id;
}

std::variant<runtime::state::members_iterator, errc> runtime::state::begin_retirement(worker_id which) {
    const base::lock_guard lock(mutex);
    if (is_closed) return errc::stopped;
    const auto found =
        std::find_if(members.begin(), members.end(), [&](const member& each) { return each.id == which; });
    if (found == members.end() || found->is_retiring) return errc::no_such_worker;
    for (const member& each : members) {
        // Two that wait for each other would wait for ever.
        if (each.worker->is_below() && (each.id == which || each.is_retiring)) return errc::on_a_worker;
    }
    if (std::count_if(members.begin(), members.end(), [](const member& each) { return !each.is_retiring; }) == 1) {
        return errc::last_worker;
    }
    found->is_retiring = true;
    found->gives_away.store(true, base::memory_order_relaxed);
    tell_to_leave(*found);
    return found;
}

std::optional<errc> runtime::state::retire_member(worker_id which) {
    const std::variant<members_iterator, errc> begun = begin_retirement(which);
    if (const errc* const why_not = std::get_if<errc>(&begun)) return *why_not;
    const members_iterator leaving = std::get<members_iterator>(begun);
    end_member(*leaving);
    const base::lock_guard lock(mutex);
    members.erase(leaving);
    ++retired;
    changed.notify_all();
    return std::nullopt;
}

// --- What users call.

worker_id runtime::add_worker() {
    state_->refuse_in_forked_child("chime::runtime::add_worker");
    const std::variant<worker_id, errc> added = state_->add_member();
    if (const worker_id* const its = std::get_if<worker_id>(&added)) return *its;
    if (std::get<errc>(added) == errc::stopped) {
        detail::refuse(errc::stopped,
                       "chime::runtime::add_worker: the runtime was shut down, for good; make another one");
    }
    detail::refuse(errc::too_many_workers, "chime::runtime::add_worker: 512 workers run already; retire one before");
}

std::optional<worker_id> runtime::try_add_worker() {
    if (state_->crew.is_in_forked_child()) return std::nullopt;
    try {
        const std::variant<worker_id, errc> added = state_->add_member();
        const worker_id* const its = std::get_if<worker_id>(&added);
        return its != nullptr ? std::optional(*its) : std::nullopt;
    } catch (const std::system_error&) {
        return std::nullopt;  // The system has no thread to give, which is a shortage like the others.
    }
}

void runtime::retire_worker(worker_id which) {
    state_->refuse_in_forked_child("chime::runtime::retire_worker");
    const std::optional<errc> why_not = state_->retire_member(which);
    if (!why_not) return;
    std::string message = "chime::runtime::retire_worker: ";
    switch (*why_not) {
    case errc::no_such_worker: message += std::to_string(which) + " never was a worker, or has retired"; break;
    case errc::on_a_worker:
        message += "called on that worker itself, or on one that is retiring; call it from another thread";
        break;
    case errc::last_worker: message += "it is the last one; add another before, or shut down"; break;
    default: message += "the runtime was shut down";
    }
    throw std::system_error(make_error_code(*why_not), message);
}

bool runtime::try_retire_worker(worker_id which) {
    return !state_->crew.is_in_forked_child() && !state_->retire_member(which);
}

}  // namespace chime::inline v0
