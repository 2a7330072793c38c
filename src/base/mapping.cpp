// SPDX-License-Identifier: MIT
#include "base/mapping.hpp"

#include "base/check.hpp"
#include "base/poison.hpp"

#include <cerrno>
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

/// False: to cut this piece out of what the system has merged it with would need one mapping more than it allows.
bool unmap(std::byte* from, std::size_t bytes) noexcept {
    if (bytes == 0 || ::munmap(from, bytes) == 0) return true;
    CHIME_CHECK(errno == ENOMEM, "a mapping gives back exactly what it reserved");
    return false;
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
    std::byte* const aligned = first + before_bytes;
    std::byte* const end = first + mapped_bytes;
    if (!unmap(first, before_bytes)) {
        unmap(first, mapped_bytes);
        throw std::bad_alloc();
    }
    if (!unmap(aligned + wanted_bytes, chunk_bytes - before_bytes)) {
        unmap(aligned, static_cast<std::size_t>(end - aligned));
        throw std::bad_alloc();
    }
    data_ = aligned;
    reserved_bytes_ = wanted_bytes;

    // Advice that is refused, by a kernel without huge pages for one, changes nothing but speed.
    const std::size_t first_bytes = advice == huge_pages::when_large ? chunk_bytes : 0;
    if (advice != huge_pages::no && reserved_bytes_ > first_bytes) {
        ::madvise(data_ + first_bytes, reserved_bytes_ - first_bytes, MADV_HUGEPAGE);
    }
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
    // Whoever gets these addresses next knows nothing of who had them; that of g++ does not forget it by itself.
    unpoison(data_, committed_bytes_);
    // If the range cannot be cut out, it stays reserved, but its memory goes back all the same.
    if (!unmap(data_, reserved_bytes_)) ::madvise(data_, reserved_bytes_, MADV_DONTNEED);
    data_ = nullptr;
    committed_bytes_ = 0;
    reserved_bytes_ = 0;
}

}  // namespace chime::inline v0::base
