// SPDX-License-Identifier: MIT

// The demonstration: many sleeping coroutines, timeouts that other threads arm and cancel, workers that come and go; the
// same on Boost.Asio beside it; and whether every promise was kept.

#include "options.hpp"
#include "screen.hpp"
#include "separate_run.hpp"
#include "sides.hpp"
#include "verdict.hpp"
#include "wording.hpp"
#include "work.hpp"

#include <chime/version.hpp>

#include <cstdio>
#include <fstream>
#include <optional>
#include <string>

namespace chime_demo {
namespace {

bool can_write(const std::string& path) {
    return path.empty() || std::ofstream(path, std::ios::app).is_open();
}

bool write_file(const std::string& path, const std::string& text) {
    if (path.empty()) return true;
    std::ofstream file(path, std::ios::trunc);
    file << text;
    file.close();
    if (!file) std::fprintf(stderr, "chime_demo: cannot write to '%s'; the numbers are above\n", path.c_str());
    return static_cast<bool>(file);
}

int run(const options& chosen) {
    const work work{chosen.duration, chosen.sleepers, chosen.workers};
    answer_interrupts();
    std::printf("%s coroutines asleep for up to %lld s,\nas many timeouts, %u workers\n",
                grouped(work.sleepers).c_str(), static_cast<long long>(chosen.duration.count()), work.workers);

    print_heading("chime " + std::string(chime::version()));
    const std::optional<results> chime = run_separately([&] { return run_on_chime(work); });
    if (!chime) return 1;

    results asio;
    if (asio_version().empty()) {
        std::printf("\nBoost was not there when this was built,\nso there is nothing beside chime.\n");
    } else if (!interrupted) {
        print_heading("Boost.Asio " + asio_version() + ", the same work");
        const std::optional<results> told = run_separately([&] { return run_on_asio(work); });
        if (!told) return 1;
        asio = *told;
    }

    print_heading("Side by side");
    std::fputs(side_by_side(work, *chime, asio, columns()).c_str(), stdout);
    print_heading("Promises of chime");
    const verdict judged = judge(work, *chime);
    const std::string complaint = complaint_about_asio(work, asio);
    std::fputs(judged.text.c_str(), stdout);
    if (!complaint.empty()) std::fprintf(stderr, "chime_demo: %s\n", complaint.c_str());
    const bool is_kept = judged.is_kept && complaint.empty();
    const bool is_written = write_file(chosen.json_path, as_json(work, *chime, asio, judged.is_kept));
    std::printf("\n%s\n", judged.is_kept ? "every promise was kept" : "A PROMISE WAS BROKEN");
    if (interrupted) std::printf("stopped by Ctrl-C: partial results\n");
    if (!is_kept || !is_written) return 1;
    return interrupted ? 130 : 0;
}

}  // namespace
}  // namespace chime_demo

int main(int count, char** arguments) {
    using namespace chime_demo;
    options chosen = parse(count, arguments);
    if (chosen.help) {
        std::fputs(help_text().c_str(), stdout);
        return 0;
    }
    if (chosen.error.empty() && !can_write(chosen.json_path)) {
        chosen.error = "cannot write to '" + chosen.json_path + "'; choose another file";
    }
    if (!chosen.error.empty()) {
        std::fprintf(stderr, "chime_demo: %s\n%s\n", chosen.error.c_str(), usage_line().c_str());
        return 2;
    }
    return run(chosen);
}
