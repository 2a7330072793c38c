// SPDX-License-Identifier: MIT
#include "shim/engine/execution.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

// What the compiler and the C++ library call in the test build. With -fsanitize=thread the compiler calls a function for
// every access to memory; the ones here, and not those of the sanitizer, look for races among fibers.

extern "C" char __executable_start;

namespace chime::shim {

namespace {

std::string place_of(const void* code) {
    char command[256];
    const auto offset = static_cast<unsigned long>(static_cast<const char*>(code) - &__executable_start) - 1;
    std::snprintf(command, sizeof command, "addr2line -s -e /proc/%d/exe 0x%lx 2>/dev/null", ::getpid(), offset);
    std::string text;
    if (FILE* const answer = ::popen(command, "r")) {
        char line[256] = {};
        if (std::fgets(line, sizeof line, answer) != nullptr) text = line;
        ::pclose(answer);
    }
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text.empty() ? "?" : text;
}

[[noreturn]] void tell_race(execution& in, const races::access& made, const char* what, const races::found& with) {
    std::string text = std::string("a data race: it ") + what + " " + std::to_string(made.bytes) + " bytes";
    if (in.is_traced()) {
        text += " at " + place_of(made.code) + " that " + in.name_of(with.other_thread) +
                (with.other_writes ? " has written" : " has read") + " at " + place_of(with.other_code) +
                ", and neither knows of the other";
    }
    in.fail(text);
}

void touch(const void* address, std::size_t bytes, bool writes, const void* code) noexcept {
    execution* const in = execution::current();
    if (in == nullptr || in->is_alone() || thread_image::contains(address)) return;
    const execution::pause own;
    const races::access made{address, bytes, writes, code};
    races::found with;
    if (execution::plain().races_with(in->view(), made, with)) tell_race(*in, made, writes ? "writes" : "reads", with);
}

/// One that outlives executions is no choice point, as with mutexes.
void meet(const volatile void* address) noexcept {
    execution* const in = execution::current();
    if (in == nullptr) return;
    const execution::pause own;
    if (!outlives_executions(const_cast<const void*>(address))) {
        in->step();
        if (in->is_traced()) in->note("comes to an atomic that is not the library's own");
    }
    in->view().tick();
    vector_clock& known = in->unlocked[const_cast<const void*>(address)];
    in->view().clock.join(known);
    known = in->view().clock;
}

}  // namespace

}  // namespace chime::shim

using chime::shim::meet;
using chime::shim::tell_race;
using chime::shim::touch;

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}

#define CHIME_ACCESS(bytes)                                        \
    void __tsan_read##bytes(void* address) {                       \
        touch(address, bytes, false, __builtin_return_address(0)); \
    }                                                              \
    void __tsan_write##bytes(void* address) {                      \
        touch(address, bytes, true, __builtin_return_address(0));  \
    }                                                              \
    void __tsan_unaligned_read##bytes(void* address) {             \
        touch(address, bytes, false, __builtin_return_address(0)); \
    }                                                              \
    void __tsan_unaligned_write##bytes(void* address) {            \
        touch(address, bytes, true, __builtin_return_address(0));  \
    }
CHIME_ACCESS(1)
CHIME_ACCESS(2)
CHIME_ACCESS(4)
CHIME_ACCESS(8)
CHIME_ACCESS(16)

void __tsan_read_range(void* address, unsigned long bytes) {
    touch(address, bytes, false, __builtin_return_address(0));
}
void __tsan_write_range(void* address, unsigned long bytes) {
    touch(address, bytes, true, __builtin_return_address(0));
}
void __tsan_vptr_update(void** address, void* value) {
    if (*address != value) touch(address, sizeof(void*), true, __builtin_return_address(0));
}
void __tsan_vptr_read(void** address) {
    touch(address, sizeof(void*), false, __builtin_return_address(0));
}

// Atomics of the C++ library and of public headers: others may run before, and whoever comes knows what others did before
// theirs, whatever the order says.
#define CHIME_ATOMIC(bits, type)                                                                                       \
    type __tsan_atomic##bits##_load(const volatile type* address, int) {                                               \
        meet(address);                                                                                                 \
        return *address;                                                                                               \
    }                                                                                                                  \
    void __tsan_atomic##bits##_store(volatile type* address, type value, int) {                                        \
        meet(address);                                                                                                 \
        *address = value;                                                                                              \
    }                                                                                                                  \
    type __tsan_atomic##bits##_exchange(volatile type* address, type value, int) {                                     \
        meet(address);                                                                                                 \
        return std::exchange(const_cast<type&>(*address), value);                                                      \
    }                                                                                                                  \
    type __tsan_atomic##bits##_fetch_add(volatile type* address, type value, int) {                                    \
        meet(address);                                                                                                 \
        const type before = *address;                                                                                  \
        *address = static_cast<type>(before + value);                                                                  \
        return before;                                                                                                 \
    }                                                                                                                  \
    type __tsan_atomic##bits##_fetch_sub(volatile type* address, type value, int) {                                    \
        meet(address);                                                                                                 \
        const type before = *address;                                                                                  \
        *address = static_cast<type>(before - value);                                                                  \
        return before;                                                                                                 \
    }                                                                                                                  \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile type* address, type* expected, type desired, int,       \
                                                      int) {                                                           \
        meet(address);                                                                                                 \
        const type before = *address;                                                                                  \
        if (before == *expected) {                                                                                     \
            *address = desired;                                                                                        \
            return 1;                                                                                                  \
        }                                                                                                              \
        *expected = before;                                                                                            \
        return 0;                                                                                                      \
    }                                                                                                                  \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile type* address, type* expected, type desired, int success, \
                                                    int failure) {                                                     \
        return __tsan_atomic##bits##_compare_exchange_strong(address, expected, desired, success, failure);            \
    }
CHIME_ATOMIC(8, char)
CHIME_ATOMIC(32, int)
CHIME_ATOMIC(64, long)

/// Called for every thread-local variable with a destructor.
int __cxa_thread_atexit_impl(void (*destroy)(void*), void* object, void* program);
int __cxa_thread_atexit(void (*destroy)(void*), void* object, void* program) {
    using chime::shim::execution;
    execution* const in = execution::current();
    if (in == nullptr) return __cxa_thread_atexit_impl(destroy, object, program);
    const execution::pause own;
    in->running().at_end.push_back({destroy, object});
    return 0;
}

}  // extern "C"

// Memory that was given back by one thread and got by another one is not shared between them.

namespace chime::shim {

bool execution::refuses_memory() {
    const pause own;
    if (refusals_left == 0) return false;
    const choice_point where{running_->number, running_->steps++};
    if (!decides_.refuses_memory(where)) return false;
    outcome_.taken.push_back({where, deviation::kind::refused, 0});
    --refusals_left;
    if (is_traced()) note("is refused memory");
    return true;
}

}  // namespace chime::shim

namespace {

bool is_refused() {
    using chime::shim::execution;
    execution* const in = execution::current();
    return in != nullptr && in->refuses_memory();
}

void* noted(void* memory) {
    using chime::shim::execution;
    if (memory == nullptr) throw std::bad_alloc();
    if (execution::current() != nullptr) {
        const execution::pause own;
        execution::plain().forget(memory, ::malloc_usable_size(memory));
    }
    return memory;
}

void give_back(void* memory, const void* code) noexcept {
    using namespace chime::shim;
    execution* const in = execution::current();
    if (memory != nullptr && in != nullptr && !in->is_alone()) {
        const execution::pause own;
        const races::access made{memory, ::malloc_usable_size(memory), true, code};
        races::found with;
        if (execution::plain().frees(in->view(), made, with)) tell_race(*in, made, "gives back", with);
    }
    std::free(memory);
}

}  // namespace

/// What is thrown lies on the heap as well, and the C++ library asks for it in its own way.
extern "C" void* __real___cxa_allocate_exception(std::size_t bytes) noexcept;
extern "C" void* __wrap___cxa_allocate_exception(std::size_t bytes) noexcept {
    using chime::shim::execution;
    void* const thrown = __real___cxa_allocate_exception(bytes);
    if (execution::current() != nullptr) {
        const execution::pause own;
        execution::plain().forget(thrown, bytes);
    }
    return thrown;
}

/// What the system is asked for may be refused, too.
extern "C" void* __real_mmap(void* near, std::size_t bytes, int protection, int flags, int file, off_t offset);
extern "C" void* __wrap_mmap(void* near, std::size_t bytes, int protection, int flags, int file, off_t offset) {
    if (!is_refused()) return __real_mmap(near, bytes, protection, flags, file, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}
extern "C" int __real_mprotect(void* memory, std::size_t bytes, int protection);
extern "C" int __wrap_mprotect(void* memory, std::size_t bytes, int protection) {
    if (!is_refused()) return __real_mprotect(memory, bytes, protection);
    errno = ENOMEM;
    return -1;
}

/// chime::detail::take_frame(): after the first execution its pool is full, and asks nobody any more.
extern "C" void* __real__ZN5chime2v06detail10take_frameEm(std::size_t bytes);
extern "C" void* __wrap__ZN5chime2v06detail10take_frameEm(std::size_t bytes) {
    if (is_refused()) throw std::bad_alloc();
    return __real__ZN5chime2v06detail10take_frameEm(bytes);
}

/// Addresses that one thread gives back to the system may be the next ones that another thread gets.
extern "C" int __real_munmap(void* memory, std::size_t bytes);
extern "C" int __wrap_munmap(void* memory, std::size_t bytes) {
    using namespace chime::shim;
    execution* const in = execution::current();
    if (in != nullptr && !in->is_alone()) {
        const execution::pause own;
        const races::access made{memory, bytes, true, __builtin_return_address(0)};
        races::found with;
        if (execution::plain().frees(in->view(), made, with)) tell_race(*in, made, "unmaps", with);
        execution::plain().forget(memory, bytes);
    }
    return __real_munmap(memory, bytes);
}

void* operator new(std::size_t bytes) {
    if (is_refused()) throw std::bad_alloc();
    return noted(std::malloc(bytes != 0 ? bytes : 1));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    if (is_refused()) throw std::bad_alloc();
    const auto step = static_cast<std::size_t>(alignment);
    return noted(std::aligned_alloc(step, (bytes + step - 1) / step * step));
}
void operator delete(void* memory) noexcept {
    give_back(memory, __builtin_return_address(0));
}
void operator delete(void* memory, std::size_t) noexcept {
    give_back(memory, __builtin_return_address(0));
}
void operator delete(void* memory, std::align_val_t) noexcept {
    give_back(memory, __builtin_return_address(0));
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    give_back(memory, __builtin_return_address(0));
}
