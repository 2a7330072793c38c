// SPDX-License-Identifier: MIT
//
// Runs a fuzz target without a fuzzer: on the files given, or on pseudo-random inputs if there are none.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

int replay_files(int count, char** names) {
    for (int i = 0; i < count; ++i) {
        std::ifstream file(names[i], std::ios::binary);
        if (!file) {
            std::fprintf(stderr, "cannot read %s\n", names[i]);
            return 1;
        }
        const std::vector<char> text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
        const std::vector<std::uint8_t> bytes(text.begin(), text.end());
        LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
        std::printf("%s: passed\n", names[i]);
    }
    return 0;
}

/// The same inputs in every run: this keeps the target alive, looking for news is the fuzzer's work.
void replay_fixed_inputs() {
    constexpr unsigned inputs = 300;
    for (unsigned seed = 0; seed < inputs; ++seed) {
        std::mt19937 random(seed);
        std::vector<std::uint8_t> bytes(16 + random() % 1500);
        for (auto& byte : bytes) {
            byte = static_cast<std::uint8_t>(random());
        }
        LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    }
    std::printf("%u fixed inputs: passed\n", inputs);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 1) {
        return replay_files(argc - 1, argv + 1);
    }
    replay_fixed_inputs();
    return 0;
}
