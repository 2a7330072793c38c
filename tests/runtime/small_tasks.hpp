// SPDX-License-Identifier: MIT
//
// Tasks that many tests spawn.
#pragma once

#include <chime/cancel.hpp>
#include <chime/error.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>

#include <chrono>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace chime::test {

inline task<int> answer_after(std::chrono::nanoseconds pause, int number) {
    co_await sleep_for(pause);
    co_return number;
}

inline task<> fail_after(std::chrono::nanoseconds pause) {
    co_await sleep_for(pause);
    throw std::out_of_range("from a task");
}

/// Sleeps for an hour, and notes what ended it.
inline task<> sleep_and_note(cancel_token token, std::vector<wake_reason>& reasons) {
    reasons.push_back(co_await sleep_for(std::chrono::hours{1}, std::move(token)));
}

template <class T>
task<> join_into(join_handle<T> joined, std::optional<T>& result) {
    T value = co_await joined;
    result.emplace(std::move(value));
}

/// What a join ended with, if it was refused or has failed.
template <class T>
task<> join_for_failure(join_handle<T> joined, std::string& failure) {
    try {
        static_cast<void>(co_await joined);
        failure = "none";
    } catch (const std::system_error& error) {
        failure = error.code() == errc::cancelled ? "cancelled" : "another system_error";
    } catch (const std::exception& error) {
        failure = error.what();
    }
}

}  // namespace chime::test
