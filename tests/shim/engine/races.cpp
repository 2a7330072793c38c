// SPDX-License-Identifier: MIT
#include "shim/engine/races.hpp"

#include <algorithm>

namespace chime::shim {

races::cell& races::cell_of(std::uintptr_t word) {
    const std::uintptr_t number = word / (page_bytes / 8);
    auto& cached = recent_[number % recent_.size()];
    if (cached.second == nullptr || cached.first != number) {
        std::unique_ptr<page>& its = pages_[number];
        if (!its) its = std::make_unique<page>();
        cached = {number, its.get()};
    }
    cell& its = (*cached.second)[word % (page_bytes / 8)];
    if (its.execution != execution_) {
        its = cell{};
        its.execution = execution_;
    }
    return its;
}

bool races::touch(cell& its, const memory_view& mine, std::uint8_t bytes, const access& made, found& with) {
    // After the last step, so that only what comes with the next one makes it known.
    const std::uint32_t step = mine.now() + 1;
    use* place = nullptr;
    for (use& each : its.uses) {
        if (each.bytes == 0) {
            if (place == nullptr) place = &each;
            continue;
        }
        const bool is_mine = each.thread == mine.thread;
        if (!is_mine && (each.bytes & bytes) != 0 && (each.writes || made.writes) &&
            !mine.clock.knows(each.thread, each.step)) {
            with = {each.thread, each.writes, each.code};
            return true;
        }
        // One that says less than this one does.
        const bool is_covered = (each.bytes & ~bytes) == 0 && (made.writes || !each.writes) &&
                                (is_mine || mine.clock.knows(each.thread, each.step));
        if (is_covered) {
            if (place == nullptr || place->bytes == 0) {
                place = &each;
            } else {
                each = use{};
            }
        }
    }
    if (place == nullptr) place = &its.uses[its.next++ % its.uses.size()];
    *place = {step, static_cast<std::uint8_t>(mine.thread), bytes, made.writes, made.code};
    return false;
}

bool races::races_with(const memory_view& mine, const access& made, found& with) {
    std::uintptr_t from = reinterpret_cast<std::uintptr_t>(made.address);
    const std::uintptr_t end = from + made.bytes;
    while (from < end) {
        const std::uintptr_t word_end = std::min(end, (from & ~std::uintptr_t{7}) + 8);
        const auto first = static_cast<unsigned>(from & 7U);
        const auto count = static_cast<unsigned>(word_end - from);
        const auto mask = static_cast<std::uint8_t>(((1U << count) - 1) << first);
        if (touch(cell_of(from >> 3U), mine, mask, made, with)) return true;
        from = word_end;
    }
    return false;
}

void races::forget(const void* address, std::size_t bytes) {
    const std::uintptr_t from = reinterpret_cast<std::uintptr_t>(address);
    for (std::uintptr_t word = from >> 3U; word < (from + bytes + 7) >> 3U; ++word) cell_of(word).execution = 0;
}

}  // namespace chime::shim
