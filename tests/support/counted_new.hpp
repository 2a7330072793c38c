// SPDX-License-Identifier: MIT
#pragma once

#include "support/random.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

// Counts every call of operator new in the process, and of malloc where no sanitizer has taken its place. It defines the
// operators, so one file of a program includes it.

namespace {

std::atomic<std::uint64_t> allocations{0};

void* or_throw(void* memory) {
    return memory != nullptr ? memory : throw std::bad_alloc();
}
void* counted(std::size_t bytes) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    return std::malloc(bytes != 0 ? bytes : 1);
}
void* counted(std::size_t bytes, std::align_val_t alignment) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    const auto unit = static_cast<std::size_t>(alignment);
    return std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit);
}

}  // namespace

#if defined(__GLIBC__) && CHIME_TEST_SCALE == 1
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);

void* malloc(std::size_t bytes) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    return __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    return __libc_realloc(memory, bytes);
}
}
#endif

void* operator new(std::size_t bytes) {
    return or_throw(counted(bytes));
}
void* operator new[](std::size_t bytes) {
    return or_throw(counted(bytes));
}
void* operator new(std::size_t bytes, std::align_val_t a) {
    return or_throw(counted(bytes, a));
}
void* operator new[](std::size_t bytes, std::align_val_t a) {
    return or_throw(counted(bytes, a));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return counted(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
    return counted(bytes);
}
void* operator new(std::size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept {
    return counted(bytes, a);
}
void* operator new[](std::size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept {
    return counted(bytes, a);
}
// Not inlined: g++ would see malloc() on one side and operator delete on the other, or the reverse, and take it for a mistake.
[[gnu::noinline]] void operator delete(void* memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::align_val_t) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, const std::nothrow_t&) noexcept {
    std::free(memory);
}
