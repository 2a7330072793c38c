// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory_resource>
#include <new>

namespace chime::test {

/// Memory that runs out when it is told to, and knows what it has lent.
class failing_memory final : public std::pmr::memory_resource {
 public:
    static constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

    /// So many more allocations succeed; all later ones fail until told otherwise.
    void fail_after(std::uint64_t allocations) { left_ = allocations; }
    std::size_t lent_bytes() const { return lent_bytes_; }
    std::uint64_t allocations() const { return allocations_; }
    std::uint64_t refusals() const { return refusals_; }

 private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
        if (left_ == 0) {
            ++refusals_;
            throw std::bad_alloc();
        }
        if (left_ != unlimited) {
            --left_;
        }
        void* memory = std::pmr::new_delete_resource()->allocate(bytes, alignment);
        ++allocations_;
        lent_bytes_ += bytes;
        return memory;
    }
    void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
        lent_bytes_ -= bytes;
        std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
    }
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

    std::uint64_t left_ = unlimited;
    std::uint64_t allocations_ = 0;
    std::uint64_t refusals_ = 0;
    std::size_t lent_bytes_ = 0;
};

}  // namespace chime::test
