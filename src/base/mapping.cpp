// SPDX-License-Identifier: MIT
#include "base/mapping.hpp"

#include "base/check.hpp"

#include <cstdint>
#include <limits>
#include <new>
#include <utility>

#include <sys/mman.h>

namespace chime::inline v0::base {

namespace {

constexpr std::size_t to_whole_chunks(std::size_t bytes) noexcept {
    return (bytes + mapping::chunk_bytes - 1) / mapping::chunk_bytes * mapping::chunk_bytes;
}

void unmap(std::byte* from, std::size_t bytes) noexcept {
    if (bytes == 0) return;
    CHIME_CHECK(::munmap(from, bytes) == 0, "a mapping gives back exactly what it reserved");
}

}  // namespace

mapping::mapping(std::size_t bytes, huge_pages advice) {
    // Twice a chunk of room: one to round up, one to align.
    if (bytes > std::numeric_limits<std::size_t>::max() - 2 * chunk_bytes) throw std::bad_alloc();
    const std::size_t wanted_bytes = to_whole_chunks(bytes);
    if (wanted_bytes == 0) return;

    const std::size_t mapped_bytes = wanted_bytes + chunk_bytes;
    void* const mapped = ::mmap(nullptr, mapped_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();

    // The system aligns to small pages only, so the ends that stick out of the aligned range go back.
    std::byte* const first = static_cast<std::byte*>(mapped);
    const std::size_t misaligned_bytes = reinterpret_cast<std::uintptr_t>(first) % chunk_bytes;
    const std::size_t before_bytes = misaligned_bytes == 0 ? 0 : chunk_bytes - misaligned_bytes;
    data_ = first + before_bytes;
    reserved_bytes_ = wanted_bytes;
    unmap(first, before_bytes);
    unmap(data_ + reserved_bytes_, chunk_bytes - before_bytes);

    // Advice that is refused, by a kernel without huge pages for one, changes nothing but speed.
    if (advice == huge_pages::yes) ::madvise(data_, reserved_bytes_, MADV_HUGEPAGE);
}

mapping::mapping(mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      committed_bytes_(std::exchange(other.committed_bytes_, 0)),
      reserved_bytes_(std::exchange(other.reserved_bytes_, 0)) {}

mapping& mapping::operator=(mapping&& other) noexcept {
    if (this != &other) {
        release();
        data_ = std::exchange(other.data_, nullptr);
        committed_bytes_ = std::exchange(other.committed_bytes_, 0);
        reserved_bytes_ = std::exchange(other.reserved_bytes_, 0);
    }
    return *this;
}

bool mapping::commit(std::size_t bytes) noexcept {
    if (bytes <= committed_bytes_) return true;
    if (bytes > reserved_bytes_) return false;
    const std::size_t wanted_bytes = to_whole_chunks(bytes);
    if (::mprotect(data_ + committed_bytes_, wanted_bytes - committed_bytes_, PROT_READ | PROT_WRITE) != 0)
        return false;
    committed_bytes_ = wanted_bytes;
    return true;
}

void mapping::release() noexcept {
    unmap(data_, reserved_bytes_);
    data_ = nullptr;
    committed_bytes_ = 0;
    reserved_bytes_ = 0;
}

}  // namespace chime::inline v0::base
