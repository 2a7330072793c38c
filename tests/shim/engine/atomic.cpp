// SPDX-License-Identifier: MIT
#include "shim/engine/atomic.hpp"

#include "shim/engine/execution.hpp"

#include <string>

namespace chime::shim {

namespace {

std::uint64_t mask_of(unsigned bytes) noexcept {
    return bytes == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (bytes * 8)) - 1;
}

std::uint64_t changed(change how, std::uint64_t before, std::uint64_t operand, unsigned bytes) noexcept {
    switch (how) {
    case change::exchange: return operand;
    case change::add: return (before + operand) & mask_of(bytes);
    case change::subtract: return (before - operand) & mask_of(bytes);
    case change::bit_and: return before & operand;
    case change::bit_or: return before | operand;
    }
    return before;
}

const char* name_of(change how) noexcept {
    switch (how) {
    case change::exchange: return "exchange";
    case change::add: return "fetch_add";
    case change::subtract: return "fetch_sub";
    case change::bit_and: return "fetch_and";
    case change::bit_or: return "fetch_or";
    }
    return "?";
}

site& reach(const std::source_location& where, operation kind, std::memory_order order) {
    site& its = site_of(where);
    its.was_reached = true;
    its.kind = kind;
    its.order = order;
    return its;
}

void begin(execution& in, site& where, const void* address) {
    in.approach(where, address);
    if (!where.is_quiet) in.step();
    in.view().tick();
}

std::string hexadecimal(std::uint64_t value) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (; value != 0 || text.empty(); value >>= 4U) text.insert(text.begin(), digits[value & 15U]);
    return "0x" + text;
}

std::string place(const void* address, unsigned bytes) {
    return " [" + std::to_string(execution::words().number_of(address, bytes)) + "] ";
}

void write_raw(void* address, unsigned bytes, std::uint64_t value) noexcept {
    std::memcpy(address, &value, bytes);
}

}  // namespace

void atomic_made(const void* address) noexcept {
    if (execution::current() != nullptr) execution::words().made(address);
}

std::uint64_t atomic_load(const void* address, unsigned bytes, std::memory_order order,
                          const std::source_location& where) noexcept {
    execution* const in = execution::current();
    if (in == nullptr) return memory::raw(address, bytes);
    const execution::pause own;
    site& its = reach(where, operation::load, order);
    begin(*in, its, address);
    order = order_at(its, order);
    const std::uint64_t newest = memory::raw(address, bytes);
    const unsigned guess = its.foresees && order != std::memory_order_seq_cst ? in->foresees(address, bytes) : 0;
    const std::uint64_t value = guess != 0 ? execution::words().foresee(in->view(), address, bytes, order, guess - 1)
                                           : execution::words().load(in->view(), address, bytes, order, in->values());
    if (in->is_traced() && !its.is_quiet) {
        in->note("load " + std::string(name_of(order)) + place(address, bytes) + hexadecimal(value) +
                     (value != newest ? " OLD, newest " + hexadecimal(newest) : ""),
                 its);
    }
    return value;
}

void atomic_store(void* address, unsigned bytes, std::uint64_t value, std::memory_order order,
                  const std::source_location& where) noexcept {
    execution* const in = execution::current();
    if (in == nullptr) return write_raw(address, bytes, value);
    const execution::pause own;
    site& its = reach(where, operation::store, order);
    begin(*in, its, address);
    if (its.is_omitted) return;
    order = order_at(its, order);
    execution::words().store(in->view(), address, bytes, value, order, in->values());
    in->remember(address, value);
    if (in->is_traced() && !its.is_quiet) {
        const std::uint64_t newest = memory::raw(address, bytes);
        in->note("store " + std::string(name_of(order)) + place(address, bytes) + hexadecimal(value) +
                     (value != newest ? " BEFORE " + hexadecimal(newest) : ""),
                 its);
    }
}

std::uint64_t atomic_modify(void* address, unsigned bytes, change how, std::uint64_t operand, std::memory_order order,
                            const std::source_location& where) noexcept {
    execution* const in = execution::current();
    if (in == nullptr) {
        const std::uint64_t before = memory::raw(address, bytes);
        write_raw(address, bytes, changed(how, before, operand, bytes));
        return before;
    }
    const execution::pause own;
    site& its = reach(where, operation::exchange, order);
    begin(*in, its, address);
    order = order_at(its, order);
    const std::uint64_t newest = memory::raw(address, bytes);
    if (its.foresees && how == change::exchange && order == std::memory_order_relaxed) {
        if (const unsigned guess = in->foresees(address, bytes)) {
            return execution::words().foresee_and_store(in->view(), address, bytes, operand, order, guess - 1);
        }
    }
    const std::uint64_t before =
        execution::words().modify(in->view(), address, bytes, order, in->values(), [&](std::uint64_t value) {
            return its.is_omitted ? value : changed(how, value, operand, bytes);
        });
    in->remember(address, changed(how, before, operand, bytes));
    if (in->is_traced() && !its.is_quiet) {
        in->note(std::string(name_of(how)) + " " + name_of(order) + place(address, bytes) + hexadecimal(before) +
                     " -> " + hexadecimal(changed(how, before, operand, bytes)) +
                     (before != newest ? " BEFORE " + hexadecimal(newest) : ""),
                 its);
    }
    return before;
}

bool atomic_compare(void* address, unsigned bytes, std::uint64_t& expected, const comparison& wanted,
                    const std::source_location& where) noexcept {
    execution* const in = execution::current();
    if (in == nullptr) {
        const std::uint64_t before = memory::raw(address, bytes);
        const bool is_equal = before == expected;
        if (is_equal) write_raw(address, bytes, wanted.desired);
        expected = before;
        return is_equal;
    }
    const execution::pause own;
    site& its = reach(where, operation::compare, wanted.success);
    its.failure = wanted.failure;
    its.has_own_failure = wanted.has_own_failure;
    begin(*in, its, address);
    const std::memory_order success = order_at(its, wanted.success);
    const std::memory_order failure = failure_order_at(its, success, wanted.failure);
    if (wanted.is_weak && memory::raw(address, bytes) == expected && in->fails_spuriously()) {
        if (in->is_traced()) in->note("compare_exchange" + place(address, bytes) + "fails for no reason", its);
        return false;
    }
    if (its.is_omitted && memory::raw(address, bytes) == expected) return true;
    const std::uint64_t before = expected;
    const std::uint64_t newest = memory::raw(address, bytes);
    const bool did = execution::words().compare(in->view(), address, bytes,
                                                {expected, wanted.desired, success, failure}, in->values(), expected);
    if (did) in->remember(address, wanted.desired);
    if (in->is_traced() && !its.is_quiet) {
        const std::string result =
            did ? " -> " + hexadecimal(wanted.desired) : " fails, found " + hexadecimal(expected);
        in->note("compare_exchange " + std::string(name_of(did ? success : failure)) + place(address, bytes) +
                     hexadecimal(before) + result + (expected != newest ? " BEFORE " + hexadecimal(newest) : ""),
                 its);
    }
    return did;
}

void atomic_fence(std::memory_order order, const std::source_location& where) noexcept {
    execution* const in = execution::current();
    if (in == nullptr) return;
    const execution::pause own;
    site& its = reach(where, operation::fence, order);
    begin(*in, its, nullptr);
    memory::fence(in->view(), order_at(its, order), execution::words().fences);
    if (in->is_traced()) in->note("fence " + std::string(name_of(order)), its);
}

}  // namespace chime::shim
