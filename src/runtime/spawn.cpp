// SPDX-License-Identifier: MIT
#include <chime/spawn.hpp>

#include "worker/crew.hpp"

#include <string>
#include <system_error>

namespace chime::inline v0::detail {

void spawn_frame(crew& home, std::coroutine_handle<> root, task_control* control, const void* where) {
    if (!home.spawn(root, control, where)) refuse_spawn(home, "chime::spawn");
}

void refuse_spawn(crew& home, const char* call) {
    if (home.is_stopped()) {
        throw std::system_error(make_error_code(errc::stopped), std::string(call) + ": " + home.reason_of_stop());
    }
    throw std::system_error(make_error_code(errc::too_many_tasks),
                            std::string(call) + ": this " + home.noun() + " has no place for another task (" +
                                std::to_string(home.stats().tasks) + " live" +
                                (home.is_alone() ? "" : ", and each worker keeps some free places at hand") +
                                "); wait for some to end, or raise max_tasks in its configuration" +
                                (home.is_alone() ? " (block_on() on a context takes two)" : ""));
}

bool try_spawn_frame(crew& home, const frame_maker& maker, const void* where) {
    return home.spawn(maker, where);
}

}  // namespace chime::inline v0::detail
