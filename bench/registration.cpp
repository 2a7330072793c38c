// SPDX-License-Identifier: MIT
//
// The one place that knows all contenders and all workloads. To add one, write its file and name it here.
#include "registration.hpp"

#include "contenders/ahead.hpp"
#include "contenders/boost_asio.hpp"
#include "contenders/boost_asio_pool.hpp"
#include "contenders/boost_asio_shared.hpp"
#include "contenders/chime_io_context.hpp"
#include "contenders/chime_loop.hpp"
#include "contenders/chime_runtime.hpp"
#include "contenders/chime_timers.hpp"
#include "contenders/chime_wheel.hpp"
#include "contenders/layout.hpp"
#include "contenders/libev.hpp"
#include "contenders/libevent.hpp"
#include "contenders/libuv.hpp"
#include "contenders/raw_sleeper.hpp"
#include "contenders/shared_queue.hpp"
#include "contenders/std_multimap.hpp"
#include "contenders/std_priority_queue.hpp"
#include "support/forked_run.hpp"
#include "workloads/expiry.hpp"
#include "workloads/fire.hpp"
#include "workloads/idle.hpp"
#include "workloads/keep_alive.hpp"
#include "workloads/keep_alive_fixed.hpp"
#include "workloads/lateness.hpp"
#include "workloads/memory_under_cancel.hpp"
#include "workloads/pause_in_burst.hpp"
#include "workloads/pause_in_cascade.hpp"
#include "workloads/remote_cancel.hpp"
#include "workloads/shared_churn.hpp"
#include "workloads/shared_keep_alive.hpp"
#include "workloads/slack.hpp"
#include "workloads/sleepers.hpp"
#include "workloads/spawn_and_join.hpp"
#include "workloads/timeout_churn.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <malloc.h>
#include <unistd.h>

namespace chime_bench {
namespace {

template <class... Types>
struct type_list {
    template <class Visitor>
    static void for_each(Visitor visit) {
        (visit.template operator()<Types>(), ...);
    }
};

// In the order in which they are shown.
using contenders = type_list<boost_asio, boost_asio_fresh, libuv, libevent, libev, std_multimap, std_priority_queue,
                             chime_wheel, chime_timers, layout<layouts::lists>, layout<layouts::wide_tickets>>;
// In a program that knows what comes next.
using contenders_ahead = type_list<ahead<boost_asio>, ahead<libev>, ahead<chime_wheel>, ahead<chime_timers>>;
using steady_workloads = type_list<timeout_churn, keep_alive, keep_alive_fixed>;
using workloads = type_list<timeout_churn, fire, keep_alive, keep_alive_fixed>;
// What is measured in real time, with those who can wait.
using waiting_contenders = type_list<boost_asio, libuv, libevent, libev, chime_loop, raw_sleeper>;
using idle_contenders = type_list<boost_asio, libuv, libevent, libev, chime_loop, chime_runtime_idle>;
using beating_contenders = type_list<boost_asio, libuv, libevent, libev, chime_wheel, chime_loop>;
// What several threads do at once.
using shared_contenders =
    type_list<boost_asio_shared, shared_queue<std_multimap>, shared_queue<std_priority_queue>, chime_runtime_shared>;
using shared_contenders_ahead = type_list<ahead<boost_asio_shared>, ahead<chime_runtime_shared>>;
using remote_contenders =
    type_list<boost_asio_remote, remote_queue<std_multimap>, chime_io_context_remote, chime_runtime_remote>;
// What coroutines do.
using sleeping_contenders =
    type_list<boost_asio_sleepers, boost_asio_pool_sleepers, chime_io_context_sleepers<false>,
              chime_io_context_sleepers<true>, chime_runtime_sleepers<false>, chime_runtime_sleepers<true>>;
using joining_contenders =
    type_list<boost_asio_joiner, boost_asio_pool_joiner, chime_io_context_joiner, chime_runtime_joiner>;
// What is asked of chime alone, with different settings.
using studies = type_list<slack, expiry>;

/// Of each thread, where several use one service.
constexpr std::uint64_t timers_of_a_thread = 10'000;

bool is_chosen(const std::vector<std::string>& chosen, std::string_view name) {
    return chosen.empty() || std::find(chosen.begin(), chosen.end(), name) != chosen.end();
}

/// Runs what a benchmark is about, once, and tells Google Benchmark what came of it.
template <class Run>
void measure(benchmark::State& state, const std::string& name, plan plan, const run_observer& observer,
             const Run& run) {
    const auto operations = state.max_iterations;
    plan.operations = static_cast<std::uint64_t>(operations);
    observer.before(name);
    while (state.KeepRunningBatch(operations)) {
        outcome result{0, interrupted_error};
        if (!interrupted) result = run(plan);
        // What one contender freed shall not lie about for the next one.
        malloc_trim(0);
        if (!result.error.empty()) {
            state.SkipWithError(result.error.c_str());
            break;
        }
        state.SetIterationTime(static_cast<double>(result.elapsed_ns) * 1e-9);
        state.counters["early"] = static_cast<double>(result.early) / static_cast<double>(operations);
        for (std::size_t i = 0; i < result.figures.size(); ++i) {
            // Counters are sorted by name; the digit keeps the order.
            state.counters["figure" + std::to_string(i) + ' ' + result.figures[i].name] = result.figures[i].value;
        }
    }
    if (!interrupted) observer.after();
}

std::vector<std::uint64_t> sizes_to_run(const options& options) {
    if (!options.sizes.empty()) return options.sizes;
    if (options.quick) return {1'000, 100'000, 1'000'000};
    return {1'000, 10'000, 100'000, 1'000'000, 10'000'000};
}

/// Whether a run tells enough to spend time on it when it was not asked for by name.
///
/// Ten million timers take some contenders minutes; there it is the reference, the best heap, the tree and the wheels
/// that show what there is to see. And the two ways to use Asio's timers differ most in arming.
template <class Workload, class Contender>
bool is_worthwhile(const options& options, std::uint64_t timers) {
    constexpr bool arms = std::is_same_v<Workload, timeout_churn> || std::is_same_v<Workload, fire>;
    constexpr bool is_second_asio = std::is_same_v<Contender, boost_asio_fresh>;
    if (options.contenders.empty() && is_second_asio && !arms) return false;
    if (timers <= 1'000'000 || !options.sizes.empty()) return true;
    return !is_second_asio && !std::is_same_v<Contender, libuv> && !std::is_same_v<Contender, libevent> &&
           !std::is_same_v<Contender, std_priority_queue>;
}

/// At ten million there are fewer repetitions too.
unsigned repetitions_to_run(const options& options, std::uint64_t timers) {
    if (options.repetitions) return *options.repetitions;
    return options.quick || timers > 1'000'000 ? 3 : 5;
}

/// Where a workload is about threads: as many as processors, fewer and more.
std::vector<unsigned> threads_to_run(const options& options) {
    if (!options.threads.empty()) return options.threads;
    if (options.quick) return {1, 2};
    return {1, 2, 4, 8};
}

template <class Contender>
void add_facts(std::vector<contender_facts>& facts) {
    const auto is_same = [](const contender_facts& known) { return known.name == Contender::name; };
    if (std::any_of(facts.begin(), facts.end(), is_same)) return;
    facts.push_back({std::string(Contender::name), Contender::version(), std::string(Contender::clock_reads)});
}

/// A contender in another language, and where it is.
struct other_program {
    std::string_view name;
    std::string path;
};

/// Hands runs to Google Benchmark, and counts them.
class registrar {
 public:
    registrar(const options& options, const run_observer& observer) : options_(options), observer_(observer) {}

    /// A workload with a contender, both chosen by name.
    template <class Workload, class Contender>
    void add(std::uint64_t timers, unsigned threads = 1) {
        if (!is_chosen(options_.contenders, Contender::name)) return;
        add_run<Workload>(Contender::name, timers, threads,
                          [](const plan& plan) { return Workload::template run<Contender>(plan); });
    }

    /// A workload that knows its own variants of chime.
    template <class Study>
    void add_study(std::uint64_t timers) {
        if (!options_.contenders.empty()) return;
        for (const auto& variant : Study::variants()) {
            add_run<Study>(variant.name, timers, 1, [variant](const plan& plan) { return Study::run(variant, plan); });
        }
    }

    /// A workload with a contender that is a program of its own.
    template <class Workload>
    void add_other(const other_program& with, std::uint64_t timers, unsigned threads = 1) {
        if (!is_chosen(options_.contenders, with.name)) return;
        add_run<Workload>(with.name, timers, threads, [path = with.path](const plan& plan) {
            const std::vector<std::string> command{path,
                                                   std::string(Workload::name),
                                                   std::to_string(plan.timers),
                                                   std::to_string(plan.operations),
                                                   std::to_string(plan.seed),
                                                   std::to_string(plan.threads)};
            if constexpr (requires { Workload::run_other(command); }) {
                return Workload::run_other(command);
            } else {
                return run_program(command);
            }
        });
    }

    [[nodiscard]] std::size_t runs() const { return runs_; }

 private:
    template <class Workload, class Run>
    void add_run(std::string_view contender, std::uint64_t timers, unsigned threads, Run run) {
        if (!is_chosen(options_.workloads, Workload::name)) return;
        const std::string name = std::string(Workload::name) + '/' + std::string(contender) + '/' +
                                 std::to_string(timers) + '/' + std::to_string(threads);
        const unsigned repetitions = repetitions_to_run(options_, timers);
        const plan plan{.timers = timers, .operations = 0, .seed = options_.seed, .threads = threads};
        benchmark::RegisterBenchmark(name.c_str(),
                                     [name, plan, run, &observer = observer_](benchmark::State& state) {
                                         measure(state, name, plan, observer, run);
                                     })
            ->UseManualTime()
            ->Iterations(static_cast<benchmark::IterationCount>(Workload::operations(timers)))
            ->Repetitions(static_cast<int>(repetitions));
        runs_ += repetitions;
    }

    const options& options_;
    const run_observer& observer_;
    std::size_t runs_ = 0;
};

using few = std::vector<std::uint64_t>;

/// Where there are sizes that make sense, unless the command line knows better.
std::vector<std::uint64_t> sizes_or(const options& options, const few& sensible) {
    return options.sizes.empty() ? sensible : options.sizes;
}

/// What a loop does while it waits, and who has to wait for it.
void register_waiting(registrar& registrar, const options& options) {
    waiting_contenders::for_each([&]<class Contender>() {
        // A thousand a second: the machine sleeps in between. Fifty thousand: it has hardly time to.
        for (const std::uint64_t timers : few{1'000, 50'000}) registrar.add<lateness, Contender>(timers);
    });
    idle_contenders::for_each([&]<class Contender>() { registrar.add<idle, Contender>(1); });
    beating_contenders::for_each([&]<class Contender>() {
        for (const std::uint64_t timers : sizes_or(options, few{1'000'000})) {
            registrar.add<pause_in_cascade, Contender>(timers);
            registrar.add<pause_in_burst, Contender>(timers);
        }
    });
}

void register_shared(registrar& registrar, const options& options) {
    shared_contenders::for_each([&]<class Contender>() {
        for (const unsigned threads : threads_to_run(options)) {
            for (const std::uint64_t timers : sizes_or(options, few{timers_of_a_thread})) {
                registrar.add<shared_churn, Contender>(timers, threads);
            }
            for (const std::uint64_t timers : sizes_to_run(options)) {
                if (options.sizes.empty() && timers > 1'000'000) continue;
                registrar.add<shared_keep_alive, Contender>(timers, threads);
            }
        }
        for (const std::uint64_t timers : sizes_or(options, few{timers_of_a_thread}))
            registrar.add<memory_under_cancel, Contender>(timers, 2);
    });
    shared_contenders_ahead::for_each([&]<class Contender>() {
        for (const unsigned threads : threads_to_run(options)) {
            for (const std::uint64_t timers : sizes_to_run(options)) {
                if (options.sizes.empty() && timers > 1'000'000) continue;
                registrar.add<shared_keep_alive, Contender>(timers, threads);
            }
        }
    });
    remote_contenders::for_each([&]<class Contender>() {
        for (const std::uint64_t timers : sizes_or(options, few{1'000, 100'000}))
            registrar.add<remote_cancel, Contender>(timers);
    });
}

const few sleeper_counts{100'000, 1'000'000};

void register_sleeping(registrar& registrar, const options& options) {
    sleeping_contenders::for_each([&]<class Contender>() {
        for (const std::uint64_t timers : sizes_or(options, sleeper_counts)) registrar.add<sleepers, Contender>(timers);
    });
    joining_contenders::for_each([&]<class Contender>() {
        for (const std::uint64_t timers : sizes_or(options, few{1, 1'000})) {
            registrar.add<spawn_and_join, Contender>(timers);
        }
    });
    for (const std::uint64_t timers : sizes_or(options, few{10'000, 500'000})) registrar.add_study<slack>(timers);
    for (const std::uint64_t timers : sizes_or(options, few{100'000})) registrar.add_study<expiry>(timers);
}

/// Contenders in other languages: programs that are called with a workload and its sizes.
struct other {
    std::string_view name;
    std::string_view clock_reads;
};
constexpr std::array<other, 2> others{{{"go", "per arm"}, {"tokio", "per arm"}}};

void register_others(registrar& registrar, const options& options) {
    if (options.others_path.empty()) return;
    for (const other& each : others) {
        const std::string program = options.others_path + "/chime_bench_" + std::string(each.name);
        if (access(program.c_str(), X_OK) != 0) continue;
        const other_program with{each.name, program};
        for (const std::uint64_t timers : sizes_to_run(options)) {
            if (timers > 1'000'000 && options.sizes.empty()) continue;
            registrar.add_other<timeout_churn>(with, timers);
            registrar.add_other<keep_alive>(with, timers);
        }
        for (const std::uint64_t timers : few{1'000, 50'000}) registrar.add_other<lateness>(with, timers);
        registrar.add_other<idle>(with, 1);
        for (const unsigned threads : threads_to_run(options)) {
            for (const std::uint64_t timers : sizes_or(options, few{timers_of_a_thread})) {
                registrar.add_other<shared_churn>(with, timers, threads);
            }
        }
        for (const std::uint64_t timers : sizes_or(options, sleeper_counts)) {
            registrar.add_other<sleepers>(with, timers);
        }
        for (const std::uint64_t timers : sizes_or(options, few{1, 1'000})) {
            registrar.add_other<spawn_and_join>(with, timers);
        }
    }
}

}  // namespace

std::vector<contender_facts> all_contenders(const std::string& others_path) {
    std::vector<contender_facts> facts;
    const auto add = [&]<class Contender>() { add_facts<Contender>(facts); };
    contenders::for_each(add);
    contenders_ahead::for_each(add);
    waiting_contenders::for_each(add);
    shared_contenders::for_each(add);
    shared_contenders_ahead::for_each(add);
    remote_contenders::for_each(add);
    sleeping_contenders::for_each(add);
    for (const other& each : others) {
        std::string version;
        if (!others_path.empty()) {
            version = output_of({others_path + "/chime_bench_" + std::string(each.name), "version"});
        }
        facts.push_back(
            {std::string(each.name), version.empty() ? "not there" : version, std::string(each.clock_reads)});
    }
    return facts;
}

std::vector<workload_facts> all_workloads() {
    std::vector<workload_facts> facts;
    const auto add = [&]<class Workload>() {
        workload_facts& it = facts.emplace_back();
        it.name = Workload::name;
        it.one_operation = Workload::one_operation;
        if constexpr (requires { Workload::unit; }) it.unit = Workload::unit;
    };
    workloads::for_each(add);
    type_list<lateness, idle, pause_in_cascade, pause_in_burst>::for_each(add);
    type_list<shared_churn, shared_keep_alive, remote_cancel, sleepers, spawn_and_join, memory_under_cancel>::for_each(
        add);
    studies::for_each(add);
    return facts;
}

std::vector<std::string> all_variants() {
    std::vector<std::string> names;
    studies::for_each([&]<class Study>() {
        for (const auto& variant : Study::variants()) names.push_back(variant.name);
    });
    return names;
}

std::size_t register_benchmarks(const options& options, const run_observer& observer) {
    registrar registrar(options, observer);
    workloads::for_each([&]<class Workload>() {
        contenders::for_each([&]<class Contender>() {
            for (const std::uint64_t timers : sizes_to_run(options)) {
                if (is_worthwhile<Workload, Contender>(options, timers)) registrar.add<Workload, Contender>(timers);
            }
        });
    });
    steady_workloads::for_each([&]<class Workload>() {
        contenders_ahead::for_each([&]<class Contender>() {
            for (const std::uint64_t timers : sizes_to_run(options)) registrar.add<Workload, Contender>(timers);
        });
    });
    register_waiting(registrar, options);
    register_shared(registrar, options);
    register_sleeping(registrar, options);
    register_others(registrar, options);
    return registrar.runs();
}

}  // namespace chime_bench
