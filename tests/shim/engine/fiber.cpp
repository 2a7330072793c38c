// SPDX-License-Identifier: MIT
#include "shim/engine/fiber.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace chime::shim {

namespace {

/// The thread-local block of the program itself, for the one thread that there is.
struct block {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    const std::byte* initial = nullptr;  ///< What it begins with; the rest is zero.
    std::size_t initial_bytes = 0;
};

int find_block(dl_phdr_info* info, std::size_t, void* result) {
    block& found = *static_cast<block*>(result);
    for (int header = 0; header < info->dlpi_phnum; ++header) {
        const ElfW(Phdr)& segment = info->dlpi_phdr[header];
        if (segment.p_type != PT_TLS) continue;
        found.data = static_cast<std::byte*>(info->dlpi_tls_data);
        found.bytes = segment.p_memsz;
        found.initial = reinterpret_cast<const std::byte*>(info->dlpi_addr + segment.p_vaddr);
        found.initial_bytes = segment.p_filesz;
    }
    return 1;  // The first one is the program.
}

const block& program_block() {
    static const block only = [] {
        block found;
        ::dl_iterate_phdr(find_block, &found);
        return found;
    }();
    return only;
}

}  // namespace

thread_image::thread_image() : variables_(program_block().bytes) {
    reset();
}

void thread_image::reset() noexcept {
    const block& from = program_block();
    if (from.bytes != 0) {
        std::memset(variables_.data(), 0, variables_.size());
        std::memcpy(variables_.data(), from.initial, from.initial_bytes);
    }
    std::memset(exceptions_, 0, sizeof exceptions_);
}

void thread_image::save() noexcept {
    if (!variables_.empty()) std::memcpy(variables_.data(), program_block().data, variables_.size());
    std::memcpy(exceptions_, abi::__cxa_get_globals(), sizeof exceptions_);
}

void thread_image::restore() const noexcept {
    if (!variables_.empty()) std::memcpy(program_block().data, variables_.data(), variables_.size());
    std::memcpy(static_cast<void*>(abi::__cxa_get_globals()), exceptions_, sizeof exceptions_);
}

bool thread_image::contains(const void* address) noexcept {
    const auto* const byte = static_cast<const std::byte*>(address);
    return byte >= program_block().data && byte < program_block().data + program_block().bytes;
}

fiber_stack::fiber_stack() {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    void* const mapped =
        ::mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (mapped == MAP_FAILED || ::mprotect(mapped, page, PROT_NONE) != 0) {
        std::perror("shim: no memory for a stack");
        std::abort();
    }
    bottom_ = static_cast<std::byte*>(mapped) + page;
}

fiber_stack::~fiber_stack() {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    ::munmap(bottom_ - page, bytes + page);
}

}  // namespace chime::shim
