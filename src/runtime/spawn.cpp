// SPDX-License-Identifier: MIT
#include <chime/spawn.hpp>

#include "worker/crew.hpp"

namespace chime::inline v0::detail {

void spawn_frame(crew& home, std::coroutine_handle<> root, task_control* control, const void* where) {
    if (home.spawn(root, control, where)) return;
    if (home.is_stopped()) refuse(errc::stopped, "chime::spawn: the timers of this context were stopped, for good");
    refuse(errc::too_many_tasks,
           "chime::spawn: as many tasks live as this context may hold; wait for some to end or raise "
           "max_tasks in its configuration");
}

}  // namespace chime::inline v0::detail
