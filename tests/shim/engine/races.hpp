// SPDX-License-Identifier: MIT
#pragma once

#include "shim/engine/memory.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace chime::shim {

/// Who has used memory that is not atomic, and when: two threads that use the same byte, one of them to write, have a
/// race unless one of them knows of the other's access.
class races {
 public:
    void begin();

    struct found {
        unsigned other_thread = 0;
        bool other_writes = false;
        const void* other_code = nullptr;
    };

    struct access {
        const void* address;
        std::size_t bytes;
        bool writes;
        const void* code;  ///< Where in the program.
    };

    /// True: it races with an earlier one.
    [[nodiscard]] bool races_with(const memory_view& mine, const access& made, found& with);
    /// New memory: what was there before does not matter.
    void forget(const void* address, std::size_t bytes);
    /// The memory is given back: like writing to all of it that was ever used. True: that races.
    [[nodiscard]] bool frees(const memory_view& mine, const access& made, found& with);

 private:
    struct use {
        std::uint32_t step = 0;
        std::uint32_t code = 0;  ///< Counted from the beginning of the program.
        std::uint8_t thread = 0;
        std::uint8_t bytes = 0;  ///< One bit for each.
        bool writes = false;
    };
    /// Eight bytes of memory.
    struct cell {
        std::uint32_t execution = 0;
        std::uint32_t next = 0;
        std::array<use, 4> uses{};
    };
    static constexpr std::size_t page_cells = 512;
    struct page {
        std::uint32_t execution = 0;  ///< The last one that has used any of it.
        std::array<cell, page_cells> cells{};
    };

    [[nodiscard]] page& page_of(std::uintptr_t word);
    [[nodiscard]] bool touch(cell& its, const memory_view& mine, std::uint8_t bytes, const access& made, found& with);
    template <class Function>
    void for_all_used(const void* address, std::size_t bytes, Function&& function);

    std::uint32_t execution_ = 0;
    std::unordered_map<std::uintptr_t, std::unique_ptr<page>> pages_;
    std::array<std::pair<std::uintptr_t, page*>, 1024> recent_{};
};

}  // namespace chime::shim
