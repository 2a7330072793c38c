// SPDX-License-Identifier: MIT
// says: std::move one that cannot be copied
#include <chime/io_context.hpp>

#include <memory>
#include <utility>

void start(chime::io_context& ctx, std::unique_ptr<int> number) {
    auto count = [number = std::move(number)] { ++*number; };
#ifdef MISTAKE
    ctx.post(count);
#else
    ctx.post(std::move(count));
#endif
}
