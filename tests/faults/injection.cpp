// SPDX-License-Identifier: MIT
#include "faults/injection.hpp"

#include "support/random.hpp"

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <thread>

#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace chime::test::faults {

failing_point allocations;
failing_point frames;
failing_point mappings;
failing_point commits;
failing_point unmappings;
failing_point threads;
failing_point descriptors;
failing_point watches;
std::atomic<std::uint32_t> futex_storm{0};
std::atomic<std::uint32_t> transfer_storm{0};
std::atomic<std::uint64_t> interruptions{0};
std::atomic<std::int64_t> live_blocks{0};
std::atomic<std::int64_t> mapped_bytes{0};

namespace {

/// A number that is different each time, without a lock.
std::uint64_t draw() noexcept {
    static std::atomic<std::uint64_t> drawn{0};
    std::uint64_t mixed = drawn.fetch_add(0x9e3779b97f4a7c15U, std::memory_order_relaxed) + 0x9e3779b97f4a7c15U;
    mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31U);
}

bool strikes(const std::atomic<std::uint32_t>& storm) noexcept {
    const std::uint32_t odds = storm.load(std::memory_order_relaxed);
    if (odds == 0 || draw() % odds != 0) return false;
    interruptions.fetch_add(1, std::memory_order_relaxed);
    return true;
}

bool is_interrupted() noexcept {
    if (!strikes(transfer_storm)) return false;
    errno = EINTR;
    return true;
}

}  // namespace
}  // namespace chime::test::faults

namespace faults = chime::test::faults;

// What the linker calls by these names is what the library asks for, and the real thing.
extern "C" {

void* __real_mmap(void* where, std::size_t bytes, int protection, int flags, int file, off_t offset);
void* __wrap_mmap(void* where, std::size_t bytes, int protection, int flags, int file, off_t offset) {
    if (faults::mappings.is_refused()) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    void* const mapped = __real_mmap(where, bytes, protection, flags, file, offset);
    if (mapped != MAP_FAILED) faults::mapped_bytes += static_cast<std::int64_t>(bytes);
    return mapped;
}

// chime::detail::take_frame().
void* __real__ZN5chime2v06detail10take_frameEm(std::size_t bytes);
void* __wrap__ZN5chime2v06detail10take_frameEm(std::size_t bytes) {
    if (faults::frames.is_refused()) throw std::bad_alloc();
    return __real__ZN5chime2v06detail10take_frameEm(bytes);
}

int __real_mprotect(void* where, std::size_t bytes, int protection);
int __wrap_mprotect(void* where, std::size_t bytes, int protection) {
    if (!faults::commits.is_refused()) return __real_mprotect(where, bytes, protection);
    errno = ENOMEM;
    return -1;
}

int __real_munmap(void* where, std::size_t bytes);
int __wrap_munmap(void* where, std::size_t bytes) {
    if (faults::unmappings.is_refused()) {
        errno = ENOMEM;
        return -1;
    }
    const int answer = __real_munmap(where, bytes);
    if (answer == 0) faults::mapped_bytes -= static_cast<std::int64_t>(bytes);
    return answer;
}

int __real_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags) {
    if (!faults::descriptors.is_refused()) return __real_eventfd(count, flags);
    errno = EMFILE;
    return -1;
}

int __real_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags) {
    if (!faults::descriptors.is_refused()) return __real_timerfd_create(clock, flags);
    errno = ENFILE;
    return -1;
}

int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags) {
    if (!faults::descriptors.is_refused()) return __real_epoll_create1(flags);
    errno = EMFILE;
    return -1;
}

int __real_epoll_ctl(int epoll, int operation, int watched, epoll_event* event);
int __wrap_epoll_ctl(int epoll, int operation, int watched, epoll_event* event) {
    if (!faults::watches.is_refused()) return __real_epoll_ctl(epoll, operation, watched, event);
    errno = ENOSPC;
    return -1;
}

ssize_t __real_read(int file, void* into, std::size_t bytes);
ssize_t __wrap_read(int file, void* into, std::size_t bytes) {
    return faults::is_interrupted() ? -1 : __real_read(file, into, bytes);
}

ssize_t __real_write(int file, const void* from, std::size_t bytes);
ssize_t __wrap_write(int file, const void* from, std::size_t bytes) {
    return faults::is_interrupted() ? -1 : __real_write(file, from, bytes);
}

long __real_syscall(long number, ...);
/// The one system call that the library makes by number and that waits: a futex.
long __wrap_syscall(long number, ...) {
    long given[6] = {};
    va_list list;
    va_start(list, number);
    for (long& each : given) each = va_arg(list, long);
    va_end(list);
    const bool is_wait = number == SYS_futex && (given[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
    if (is_wait && faults::strikes(faults::futex_storm)) {
        switch (faults::draw() % 4) {
        case 0: errno = EINTR; return -1;
        case 1: return 0;  // Woken by nobody.
        case 2: errno = EAGAIN; return -1;
        default:
            // A kernel that is too early; only somebody who has given a time is told that it is over.
            if (given[3] == 0) return 0;
            errno = ETIMEDOUT;
            return -1;
        }
    }
    return __real_syscall(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

// How std::thread starts one; the name is that of std::thread::_M_start_thread(unique_ptr<_State>, void (*)()).
using start_thread_symbol = void(std::thread*, std::unique_ptr<std::thread::_State>, void (*)());
#define CHIME_START_THREAD(prefix) \
    prefix##_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE
start_thread_symbol CHIME_START_THREAD(__real_);
void CHIME_START_THREAD(__wrap_)(std::thread* started, std::unique_ptr<std::thread::_State> state, void (*depend)()) {
    if (faults::threads.is_refused()) {
        throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    }
    CHIME_START_THREAD(__real_)(started, std::move(state), depend);
}

}  // extern "C"

#if !defined(CHIME_FAULTS_LEAVE_NEW)

namespace {

void* allocate(std::size_t bytes) noexcept {
    if (faults::allocations.is_refused()) return nullptr;
    ++faults::live_blocks;
    return std::malloc(bytes != 0 ? bytes : 1);
}
void* allocate(std::size_t bytes, std::align_val_t alignment) noexcept {
    if (faults::allocations.is_refused()) return nullptr;
    ++faults::live_blocks;
    const auto unit = static_cast<std::size_t>(alignment);
    return std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit);
}
void* or_throw(void* memory) {
    return memory != nullptr ? memory : throw std::bad_alloc();
}
void release(void* memory) noexcept {
    if (memory != nullptr) --faults::live_blocks;
    std::free(memory);
}

}  // namespace

void* operator new(std::size_t bytes) {
    return or_throw(allocate(bytes));
}
void* operator new[](std::size_t bytes) {
    return or_throw(allocate(bytes));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return or_throw(allocate(bytes, alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
    return or_throw(allocate(bytes, alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return allocate(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
    return allocate(bytes);
}
void operator delete(void* memory) noexcept {
    release(memory);
}
void operator delete[](void* memory) noexcept {
    release(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    release(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    release(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
    release(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
    release(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    release(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
    release(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
    release(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
    release(memory);
}

#endif
