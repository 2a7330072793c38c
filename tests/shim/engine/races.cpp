// SPDX-License-Identifier: MIT
#include "shim/engine/races.hpp"

#include <algorithm>

extern "C" char __executable_start;

namespace chime::shim {

void races::begin() {
    constexpr std::size_t most_pages = 4096;
    ++execution_;
    if (pages_.size() <= most_pages) return;
    pages_.clear();
    recent_ = {};
}

races::page& races::page_of(std::uintptr_t word) {
    const std::uintptr_t number = word / page_cells;
    auto& cached = recent_[number % recent_.size()];
    if (cached.second == nullptr || cached.first != number) {
        std::unique_ptr<page>& its = pages_[number];
        if (!its) its = std::make_unique<page>();
        cached = {number, its.get()};
    }
    return *cached.second;
}

bool races::touch(cell& its, const memory_view& mine, std::uint8_t bytes, const access& made, found& with) {
    if (its.execution != execution_) {
        its = cell{};
        its.execution = execution_;
    }
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
            with = {each.thread, each.writes, &__executable_start + each.code};
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
    const auto code = static_cast<std::uint32_t>(static_cast<const char*>(made.code) - &__executable_start);
    *place = {step, code, static_cast<std::uint8_t>(mine.thread), bytes, made.writes};
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
        page& its = page_of(from >> 3U);
        its.execution = execution_;
        if (touch(its.cells[(from >> 3U) % page_cells], mine, mask, made, with)) return true;
        from = word_end;
    }
    return false;
}

template <class Function>
void races::for_all_used(const void* address, std::size_t bytes, Function&& function) {
    const std::uintptr_t from = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t end = (from + bytes + 7) >> 3U;
    for (std::uintptr_t word = from >> 3U; word < end;) {
        const std::uintptr_t page_end = std::min(end, (word / page_cells + 1) * page_cells);
        // Most of a large range was never used, and has no page.
        const auto its = pages_.find(word / page_cells);
        if (its != pages_.end() && its->second->execution == execution_) {
            for (; word < page_end; ++word) {
                cell& each = its->second->cells[word % page_cells];
                if (each.execution == execution_) function(each);
            }
        }
        word = page_end;
    }
}

void races::forget(const void* address, std::size_t bytes) {
    for_all_used(address, bytes, [](cell& each) { each.execution = 0; });
}

bool races::frees(const memory_view& mine, const access& made, found& with) {
    bool is_race = false;
    for_all_used(made.address, made.bytes, [&](cell& each) {
        if (!is_race) is_race = touch(each, mine, 0xff, made, with);
    });
    return is_race;
}

}  // namespace chime::shim
