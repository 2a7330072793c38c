// SPDX-License-Identifier: MIT
//
// Reads bytes as a sequence of calls with right, stale, foreign, doubled and forged handles on two contexts.
//
// libFuzzer supplies the bytes in the `fuzz` preset. Ordinary builds link the same function with replay_main.cpp.

#include "support/storm_of_handles.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace chime::test {
namespace {

/// Takes numbers off the front of the input; zeros when it is used up.
class byte_reader {
 public:
    byte_reader(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}

    [[nodiscard]] bool empty() const { return at_ == end_; }

    /// As many bytes as the bound needs.
    std::uint64_t below(std::uint64_t bound) {
        std::uint64_t value = 0;
        for (std::uint64_t left = bound - 1; left != 0 && !empty(); left >>= 8U) value = value << 8U | *at_++;
        return value % bound;
    }

 private:
    const std::uint8_t* at_;
    const std::uint8_t* end_;
};

}  // namespace
}  // namespace chime::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace chime::test;
    byte_reader input(data, size);
    storm_of_handles<byte_reader> storm(input);
    for (int steps = 0; !input.empty() && steps < 2'000 && storm.problem().empty(); ++steps) storm.step();
    storm.finish();
    if (!storm.problem().empty()) {
        std::fprintf(stderr, "a handle did what it should not: %s\n", storm.problem().c_str());
        std::abort();
    }
    return 0;
}
