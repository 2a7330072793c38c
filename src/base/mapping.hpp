// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

namespace chime::inline v0::base {

/// Which part of a mapping asks for huge pages.
enum class huge_pages : unsigned char {
    no,
    when_large,  ///< All but the first chunk: what is small stays small.
    yes,
};

/// A range of addresses that is reserved at once, filled with zeroed memory as it is needed, and never moves.
///
/// One owner. commit() is for one thread at a time; what is committed may be used from any thread that learnt of it
/// from the committer. The memory goes back to the system only with release() or the destructor.
class mapping {
 public:
    /// Memory is committed in steps of this size, which is also the alignment of the range and a huge page.
    static constexpr std::size_t chunk_bytes = std::size_t{2} << 20;

    /// A mapping of nothing, that refuses to commit.
    mapping() noexcept = default;

    /// Reserves `bytes` of addresses, rounded up to whole chunks; costs no memory. Huge pages are advice to the system,
    /// which may ignore it. Throws std::bad_alloc when there is no such range left.
    explicit mapping(std::size_t bytes, huge_pages advice = huge_pages::no);

    mapping(mapping&& other) noexcept;
    mapping& operator=(mapping&& other) noexcept;
    ~mapping() { release(); }

    /// Makes at least the first `bytes` usable; what was usable stays as it is. False: that is beyond the reserve or the
    /// system has no memory left, and nothing changed.
    [[nodiscard]] bool commit(std::size_t bytes) noexcept;

    /// Gives memory and addresses back. Nobody may use them any more.
    void release() noexcept;

    [[nodiscard]] std::byte* data() const noexcept { return data_; }
    [[nodiscard]] std::size_t committed_bytes() const noexcept { return committed_bytes_; }
    [[nodiscard]] std::size_t reserved_bytes() const noexcept { return reserved_bytes_; }

 private:
    std::byte* data_ = nullptr;
    std::size_t committed_bytes_ = 0;
    std::size_t reserved_bytes_ = 0;
};

}  // namespace chime::inline v0::base
