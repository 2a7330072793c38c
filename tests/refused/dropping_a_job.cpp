// SPDX-License-Identifier: MIT
// says: await the job for its result
#include <chime/cpu_pool.hpp>

void work(chime::cpu_pool& pool) {
#ifdef MISTAKE
    pool.submit([] {});
#endif
    static_cast<void>(pool.submit([] {}));
}
