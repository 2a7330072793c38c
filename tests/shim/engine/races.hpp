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
    void begin() noexcept { ++execution_; }

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

 private:
    struct use {
        std::uint32_t step = 0;
        std::uint8_t thread = 0;
        std::uint8_t bytes = 0;  ///< One bit for each.
        bool writes = false;
        const void* code = nullptr;
    };
    /// Eight bytes of memory.
    struct cell {
        std::uint32_t execution = 0;
        std::uint8_t next = 0;
        std::array<use, 6> uses{};
    };
    static constexpr std::size_t page_bytes = 4096;
    using page = std::array<cell, page_bytes / 8>;

    [[nodiscard]] cell& cell_of(std::uintptr_t word);
    [[nodiscard]] static bool touch(cell& its, const memory_view& mine, std::uint8_t bytes, const access& made,
                                    found& with);

    std::uint32_t execution_ = 0;
    std::unordered_map<std::uintptr_t, std::unique_ptr<page>> pages_;
    std::array<std::pair<std::uintptr_t, page*>, 64> recent_{};
};

}  // namespace chime::shim
