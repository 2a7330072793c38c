// SPDX-License-Identifier: MIT
#include "registration.hpp"
#include "support/options.hpp"
#include "support/plan.hpp"
#include "support/progress.hpp"
#include "support/results.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <sys/ioctl.h>
#include <unistd.h>

namespace chime_bench {
namespace {

template <class Facts>
std::vector<std::string> names_of(const std::vector<Facts>& facts) {
    std::vector<std::string> names;
    for (const Facts& it : facts) names.push_back(it.name);
    return names;
}

/// Takes the runs from Google Benchmark and makes rows of them; failures go to standard error at the end.
class row_collector : public benchmark::BenchmarkReporter {
 public:
    bool ReportContext(const Context&) override { return true; }

    void ReportRuns(const std::vector<Run>& runs) override {
        row result;
        std::map<std::string, std::vector<double>> figures;  // By number and name.
        for (const Run& run : runs) {
            if (run.run_type != Run::RT_Iteration) continue;  // Its own averages; the median is ours.
            if (run.error_occurred) {
                if (run.error_message != interrupted_error) {
                    failures_.push_back(run.run_name.function_name + ": " + run.error_message);
                }
                continue;
            }
            name(result, run.run_name.function_name);
            result.nanoseconds.push_back(run.real_accumulated_time * 1e9 / static_cast<double>(run.iterations));
            result.early = std::max(result.early, run.counters.at("early").value);
            for (const auto& [key, counter] : run.counters) {
                if (key.starts_with("figure")) figures[key].push_back(counter.value);
            }
        }
        if (result.nanoseconds.empty()) return;
        for (auto& [key, values] : figures) {
            std::sort(values.begin(), values.end());
            result.figures.push_back({key.substr(key.find(' ') + 1), values[values.size() / 2]});
        }
        std::sort(result.nanoseconds.begin(), result.nanoseconds.end());
        rows_.push_back(std::move(result));
    }

    [[nodiscard]] const std::vector<std::string>& failures() const { return failures_; }

    /// The rows, in the order of the lists of the report, which the random order of the runs has mixed up.
    [[nodiscard]] std::vector<row> rows_for(const report& report) const {
        std::vector<row> sorted = rows_;
        std::vector<std::string> order = names_of(report.contenders);
        for (const std::string& variant : all_variants()) order.push_back(variant);
        const std::vector<std::string> workloads = names_of(report.workloads);
        const auto rank = [&](const row& it) {
            return std::tuple(std::find(workloads.begin(), workloads.end(), it.workload), it.n, it.threads,
                              std::find(order.begin(), order.end(), it.contender));
        };
        for (row& it : sorted) {
            const auto named = [&](const workload_facts& facts) { return facts.name == it.workload; };
            const auto facts = std::find_if(report.workloads.begin(), report.workloads.end(), named);
            if (facts != report.workloads.end()) it.unit = facts->unit;
        }
        std::sort(sorted.begin(), sorted.end(), [&](const row& a, const row& b) { return rank(a) < rank(b); });
        return sorted;
    }

 private:
    /// "workload/contender/n/threads", as registered.
    static void name(row& result, const std::string& function) {
        const auto first = function.find('/');
        const auto second = function.find('/', first + 1);
        result.workload = function.substr(0, first);
        result.contender = function.substr(first + 1, second - first - 1);
        const auto third = function.find('/', second + 1);
        result.n = std::stoull(function.substr(second + 1, third - second - 1));
        result.threads = static_cast<unsigned>(std::stoul(function.substr(third + 1)));
    }

    std::vector<row> rows_;
    std::vector<std::string> failures_;
};

/// Those of `facts` that are chosen; nothing chosen means all.
template <class Facts>
std::vector<Facts> chosen_of(std::vector<Facts> facts, const std::vector<std::string>& chosen) {
    if (!chosen.empty()) {
        std::erase_if(
            facts, [&](const Facts& it) { return std::find(chosen.begin(), chosen.end(), it.name) == chosen.end(); });
    }
    return facts;
}

std::size_t terminal_width() {
    winsize size{};
    if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 160;
    return size.ws_col;
}

bool write_file(const std::string& path, const std::string& text) {
    if (path.empty()) return true;
    std::ofstream file(path, std::ios::trunc);
    file << text;
    file.close();
    if (file) return true;
    std::fprintf(stderr, "chime_bench: cannot write to '%s'; the results are in the table above\n", path.c_str());
    return false;
}

void print_early_firings(const report& report) {
    for (const row& it : report.rows) {
        if (it.early == 0) continue;
        std::printf("%s fired %.2g %% of its timers before their deadline (%s, N = %llu).\n", it.contender.c_str(),
                    100 * it.early, it.workload.c_str(), static_cast<unsigned long long>(it.n));
    }
}

void run_all(row_collector& collector) {
    // Random interleaving spreads whatever else the machine does evenly over the contenders.
    std::vector<std::string> arguments{"chime_bench", "--benchmark_enable_random_interleaving=true"};
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    int count = static_cast<int>(pointers.size());
    benchmark::Initialize(&count, pointers.data());
    benchmark::RunSpecifiedBenchmarks(&collector);
    benchmark::Shutdown();
}

extern "C" void on_interrupt(int) {
    interrupted.store(true, std::memory_order_relaxed);
}

int run(const options& options) {
    report report;
    report.workloads = chosen_of(all_workloads(), options.workloads);
    report.contenders = chosen_of(all_contenders(options.others_path), options.contenders);
    describe_surroundings(report);

    std::unique_ptr<progress> bar;
    run_observer observer;
    observer.before = [&](const std::string& name) { bar->start(name); };
    observer.after = [&] { bar->done(); };
    bar = std::make_unique<progress>(register_benchmarks(options, observer));

    // A second Ctrl-C ends the program at once, by the default action.
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);

    row_collector collector;
    run_all(collector);
    bar->clear();

    report.rows = collector.rows_for(report);
    report.complete = !interrupted;
    report.wrong_answers = collector.failures();
    std::printf("Median ns per operation unless a row says otherwise, and how many times faster than %s. %s, %s.\n\n",
                reference_contender, report.machine.c_str(), report.compiler.c_str());
    std::fputs(as_table(report, terminal_width()).c_str(), stdout);
    if (const std::string rates = as_rates(report); !rates.empty()) {
        std::printf(
            "Millions of operations a second, all threads together, and how many times what one thread does.\n\n%s",
            rates.c_str());
    }
    if (const std::string figures = as_figures(report); !figures.empty()) {
        std::printf("Beside the time, medians.\n\n%s", figures.c_str());
    }
    print_early_firings(report);
    std::fflush(stdout);  // What follows goes to standard error, and comes last.
    for (const std::string& failure : collector.failures()) {
        std::fprintf(stderr, "chime_bench: wrong answer: %s\n", failure.c_str());
    }
    const bool written =
        write_file(options.json_path, as_json_rows(report)) & write_file(options.report_path, as_json_report(report));
    if (interrupted) {
        std::fputs("chime_bench: interrupted; the results above are partial\n", stderr);
        return 130;
    }
    return collector.failures().empty() && written ? 0 : 1;
}

}  // namespace
}  // namespace chime_bench

int main(int count, char** arguments) {
    using namespace chime_bench;
    const auto workloads = names_of(all_workloads());
    const auto contenders = names_of(all_contenders());
    const options options = parse(count, arguments, workloads, contenders);
    if (!options.error.empty()) {
        const std::string help = help_text(workloads, contenders);
        std::fprintf(stderr, "chime_bench: %s\n%s\n", options.error.c_str(), help.substr(0, help.find("\n\n")).c_str());
        return 2;
    }
    if (options.help) {
        std::fputs(help_text(workloads, contenders).c_str(), stdout);
        return 0;
    }
    return run(options);
}
