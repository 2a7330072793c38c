// SPDX-License-Identifier: MIT
//
// chime_wheel_old_bugs [NAME]: puts back each bug of put_back.cmake whose name contains NAME, one after the other, and says
// which test notices. Exit code: 0 all were noticed, 1 one was not.

#include "old_bugs/switch.hpp"

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <iostream>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

struct known_bug {
    std::string_view name;
    const char* noticed_by;  ///< A filter of GoogleTest.
};

constexpr known_bug known_bugs[] = {
#include "old_bugs_of_the_wheel.inc"
};

/// Tells the first failure to whoever reads the other end.
class first_failure final : public ::testing::EmptyTestEventListener {
 public:
    explicit first_failure(int answer) : answer_(answer) {}

    void OnTestPartResult(const ::testing::TestPartResult& part) override {
        if (!part.failed()) return;
        const std::string_view text = part.summary();
        [[maybe_unused]] const ssize_t written = ::write(answer_, text.data(), text.size());
        ::_exit(1);
    }

 private:
    int answer_;
};

/// In a child, whatever it breaks. Empty: nothing was noticed.
std::string what_is_noticed(unsigned number, const char* filter) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return "";
    const pid_t child = ::fork();
    if (child == 0) {
        constexpr rlim_t most_seconds = 20;  // One that does not come to an end is noticed as well.
        const rlimit limit{most_seconds, most_seconds};
        ::setrlimit(RLIMIT_CPU, &limit);
        const rlimit no_core{0, 0};
        ::setrlimit(RLIMIT_CORE, &no_core);
        ::dup2(::open("/dev/null", O_WRONLY), STDOUT_FILENO);
        ::testing::GTEST_FLAG(filter) = filter;
        ::testing::UnitTest::GetInstance()->listeners().Append(new first_failure(ends[1]));
        chime::old_bugs::put_back = number;
        const bool passes = RUN_ALL_TESTS() == 0;
        const bool is_there = ::testing::UnitTest::GetInstance()->test_to_run_count() != 0;
        ::_exit(passes && is_there ? 0 : 2);
    }
    ::close(ends[1]);
    std::string answer;
    std::array<char, 256> buffer{};
    for (ssize_t count = 0; (count = ::read(ends[0], buffer.data(), buffer.size())) > 0;) {
        answer.append(buffer.data(), static_cast<std::size_t>(count));
    }
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGXCPU ? "it does not come to an end" : "the program dies";
    if (WEXITSTATUS(status) == 2) return "there is no such test";
    return answer;
}

std::string in_one_line(std::string text) {
    constexpr std::size_t most = 90;
    for (char& each : text) {
        if (each == '\n') each = ' ';
    }
    return text.substr(0, most);
}

}  // namespace

int main(int argc, char** argv) {
    ::testing::InitGoogleTest(&argc, argv);
    const std::string_view wanted = argc > 1 ? argv[1] : "";
    unsigned count = 0;
    unsigned unnoticed = 0;
    unsigned number = 0;
    for (const known_bug& each : known_bugs) {
        ++number;
        if (each.name.find(wanted) == each.name.npos) continue;
        ++count;
        const std::string without = what_is_noticed(0, each.noticed_by);
        const std::string with = without.empty() ? what_is_noticed(number, each.noticed_by) : "";
        unnoticed += with.empty();
        std::cout << each.name << "\n    " << (with.empty() ? "NOT NOTICED by " : "noticed by ") << each.noticed_by;
        if (!without.empty()) std::cout << ", which fails without it: " << in_one_line(without);
        if (!with.empty()) std::cout << ": " << in_one_line(with);
        std::cout << std::endl;
    }
    std::cout << count << " old bugs: " << count - unnoticed << " noticed, " << unnoticed << " not noticed\n";
    return unnoticed == 0 ? 0 : 1;
}
