// SPDX-License-Identifier: MIT
#include "shim/engine/sites.hpp"

#include <array>
#include <cstring>
#include <deque>
#include <unordered_map>

namespace chime::shim {

namespace {

struct registry {
    std::deque<site> sites;
    std::vector<site*> all;
    std::unordered_map<std::string, site*> by_place;
    std::unordered_map<const void*, site*> by_address;
};

registry& known() {
    static registry only;
    return only;
}

std::string_view shortened(std::string_view path) noexcept {
    for (const std::string_view folder : {"/src/", "/tests/", "/include/"}) {
        const std::size_t found = path.rfind(folder);
        if (found != std::string_view::npos) return path.substr(found + 1);
    }
    return path;
}

/// FNV-1a.
std::uint32_t hash_of(std::string_view text) noexcept {
    std::uint32_t hash = 2166136261U;
    for (const char each : text) hash = (hash ^ static_cast<unsigned char>(each)) * 16777619U;
    return hash;
}

bool is_focus_set = false;
bool is_any_foreseeing = false;

constexpr bool has_acquire(std::memory_order order) noexcept {
    return order != std::memory_order_relaxed && order != std::memory_order_release;
}

}  // namespace

site& site_of(const std::source_location& where) {
    // A source_location is a pointer to what the compiler has written down, once for each place and translation unit.
    static_assert(sizeof(where) == sizeof(const void*));
    const void* address = nullptr;
    std::memcpy(&address, &where, sizeof address);
    static std::array<std::pair<const void*, site*>, 1024> recent{};
    auto& cached = recent[(reinterpret_cast<std::uintptr_t>(address) >> 3U) % recent.size()];
    if (cached.first == address) return *cached.second;

    registry& all = known();
    site*& found = all.by_address[address];
    if (found == nullptr) {
        const std::string_view file = shortened(where.file_name());
        const std::string place =
            std::string(file) + ":" + std::to_string(where.line()) + ":" + std::to_string(where.column());
        site*& same = all.by_place[place];
        if (same == nullptr) {
            same = &all.sites.emplace_back();
            same->file = file;
            same->line = where.line();
            same->column = where.column();
            same->function = where.function_name();
            same->hash = hash_of(place);
            same->is_quiet =
                file == "src/worker/counters.hpp" || file == "src/worker/crew_stats.cpp" ||
                (file == "src/base/striped_counters.hpp" && same->function.find("::sum(") != same->function.npos);
            all.all.push_back(same);
        }
        found = same;
    }
    cached = {address, found};
    return *found;
}

void set_focus(site& where) noexcept {
    is_focus_set = where.is_in_focus = true;
}

bool has_focus() noexcept {
    return is_focus_set;
}

void let_foresee(site& where) noexcept {
    is_any_foreseeing = where.foresees = true;
}

bool does_any_foresee() noexcept {
    return is_any_foreseeing;
}

const std::vector<site*>& all_sites() noexcept {
    return known().all;
}

std::memory_order order_at(const site& where, std::memory_order wanted) noexcept {
    switch (where.weakened) {
    case weakening::none:
    case weakening::failure: return wanted;
    case weakening::without_acquire: return std::memory_order_release;
    case weakening::without_release: return std::memory_order_acquire;
    case weakening::one_step: break;
    }
    if (wanted != std::memory_order_seq_cst) return std::memory_order_relaxed;
    if (where.kind == operation::load) return std::memory_order_acquire;
    if (where.kind == operation::store) return std::memory_order_release;
    return std::memory_order_acq_rel;
}

std::memory_order failure_order_at(const site& where, std::memory_order success, std::memory_order failure) noexcept {
    if (where.weakened == weakening::none) return failure;
    if (where.weakened == weakening::failure) {
        return failure == std::memory_order_seq_cst ? std::memory_order_acquire : std::memory_order_relaxed;
    }
    if (where.has_own_failure) return failure;
    // It follows from the other one.
    if (success == std::memory_order_seq_cst) return std::memory_order_seq_cst;
    return has_acquire(success) ? std::memory_order_acquire : std::memory_order_relaxed;
}

const char* name_of(std::memory_order order) noexcept {
    switch (order) {
    case std::memory_order_relaxed: return "relaxed";
    case std::memory_order_consume:
    case std::memory_order_acquire: return "acquire";
    case std::memory_order_release: return "release";
    case std::memory_order_acq_rel: return "acq_rel";
    case std::memory_order_seq_cst: return "seq_cst";
    }
    return "?";
}

}  // namespace chime::shim
