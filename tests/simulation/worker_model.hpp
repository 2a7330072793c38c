// SPDX-License-Identifier: MIT
#pragma once

#include "worker/crew.hpp"

#include <chime/error.hpp>
#include <chime/runtime.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>

namespace chime::test {

/// Which workers a simulated runtime has, where each of them sits, and which of them may retire. Belongs to a duel.
class worker_model {
 public:
    [[nodiscard]] std::size_t count() const { return seats_.size(); }
    [[nodiscard]] worker_id at(std::size_t place) const {
        return std::next(seats_.begin(), static_cast<std::ptrdiff_t>(place))->first;
    }

    /// False: the new one sits nowhere.
    [[nodiscard]] bool add(worker_id id, const detail::crew& all) {
        for (std::uint32_t seat = 0; seat < all.seat_count(); ++seat) {
            if (!all.at(seat).is_driven() || is_taken(seat)) continue;
            return seats_.emplace(id, seat).second;
        }
        return false;
    }
    void retire(worker_id id) { seats_.erase(id); }

    /// From now on nobody comes or goes.
    void close() { is_closed_ = true; }
    [[nodiscard]] bool is_closed() const { return is_closed_; }

    /// Why it must not retire, if this is said where somebody sits or outside.
    [[nodiscard]] std::optional<errc> refusal_of(worker_id id, std::uint32_t said_in) const {
        if (is_closed_) return errc::stopped;
        const auto found = seats_.find(id);
        if (found == seats_.end()) return errc::no_such_worker;
        if (found->second == said_in) return errc::on_a_worker;
        if (seats_.size() == 1) return errc::last_worker;
        return std::nullopt;
    }

 private:
    [[nodiscard]] bool is_taken(std::uint32_t seat) const {
        return std::any_of(seats_.begin(), seats_.end(), [&](const auto& each) { return each.second == seat; });
    }

    std::map<worker_id, std::uint32_t> seats_;
    bool is_closed_ = false;
};

}  // namespace chime::test
