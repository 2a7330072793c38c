// SPDX-License-Identifier: MIT
#include <chime/error.hpp>

#include <string>

namespace chime::inline v0 {

namespace {

class chime_category final : public std::error_category {
 public:
    [[nodiscard]] const char* name() const noexcept override { return "chime"; }

    [[nodiscard]] std::string message(int code) const override {
        switch (static_cast<errc>(code)) {
        case errc::cancelled: return "cancelled";
        case errc::too_many_timers: return "as many timers are pending as may be";
        case errc::too_many_tasks: return "as many tasks live as may be";
        case errc::stopped: return "stopped";
        case errc::not_in_a_task: return "not inside a spawned task";
        case errc::already_running: return "somebody is running this context";
        case errc::empty_function: return "the function is empty";
        case errc::empty_task: return "there is nothing in it, or not any more";
        case errc::bad_period: return "the period is not longer than zero";
        case errc::on_a_worker: return "this thread runs tasks itself";
        case errc::no_such_worker: return "there is no such worker";
        case errc::last_worker: return "the last worker stays";
        case errc::too_many_workers: return "as many workers run as may be";
        case errc::bad_configuration: return "the configuration makes no sense";
        }
        return "unknown chime error " + std::to_string(code);
    }

    [[nodiscard]] std::error_condition default_error_condition(int code) const noexcept override {
        switch (static_cast<errc>(code)) {
        case errc::cancelled:
        case errc::stopped: return std::errc::operation_canceled;
        case errc::too_many_timers:
        case errc::too_many_tasks:
        case errc::too_many_workers: return std::errc::resource_unavailable_try_again;
        case errc::not_in_a_task:
        case errc::last_worker: return std::errc::operation_not_permitted;
        case errc::on_a_worker: return std::errc::resource_deadlock_would_occur;
        case errc::already_running: return std::errc::device_or_resource_busy;
        case errc::empty_function:
        case errc::empty_task:
        case errc::bad_period:
        case errc::no_such_worker:
        case errc::bad_configuration: return std::errc::invalid_argument;
        }
        return {code, *this};
    }
};

}  // namespace

const std::error_category& error_category() noexcept {
    static const chime_category only;
    return only;
}

void detail::refuse(errc code, const char* message) {
    throw std::system_error(make_error_code(code), message);
}

}  // namespace chime::inline v0
