// SPDX-License-Identifier: MIT
//
// The one place that knows all contenders and all workloads. To add one, write its file and name it here.
#include "registration.hpp"

#include "contenders/boost_asio.hpp"
#include "contenders/chime_loop.hpp"
#include "contenders/chime_timers.hpp"
#include "contenders/chime_wheel.hpp"
#include "contenders/layout.hpp"
#include "contenders/libev.hpp"
#include "contenders/libevent.hpp"
#include "contenders/libuv.hpp"
#include "contenders/raw_sleeper.hpp"
#include "contenders/std_multimap.hpp"
#include "contenders/std_priority_queue.hpp"
#include "workloads/fire.hpp"
#include "workloads/keep_alive.hpp"
#include "workloads/keep_alive_fixed.hpp"
#include "workloads/lateness.hpp"
#include "workloads/timeout_churn.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <malloc.h>

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
using workloads = type_list<timeout_churn, fire, keep_alive, keep_alive_fixed>;
// What is measured in real time, with those who can wait.
using waiting_contenders = type_list<boost_asio, libuv, libevent, libev, chime_loop, raw_sleeper>;
using waiting_workloads = type_list<lateness>;

/// Of the workloads in real time; the machine shall sleep in between.
constexpr std::uint64_t timers_a_second = 1'000;

bool is_chosen(const std::vector<std::string>& chosen, std::string_view name) {
    return chosen.empty() || std::find(chosen.begin(), chosen.end(), name) != chosen.end();
}

template <class Workload, class Contender>
void measure(benchmark::State& state, const std::string& name, std::uint64_t timers, std::uint64_t seed,
             const run_observer& observer) {
    const auto operations = state.max_iterations;
    observer.before(name);
    while (state.KeepRunningBatch(operations)) {
        outcome result{0, interrupted_error};
        if (!interrupted) {
            result = Workload::template run<Contender>({timers, static_cast<std::uint64_t>(operations), seed});
        }
        // What one contender freed shall not lie about for the next one.
        malloc_trim(0);
        if (!result.error.empty()) {
            state.SkipWithError(result.error.c_str());
            break;
        }
        state.SetIterationTime(static_cast<double>(result.elapsed_ns) * 1e-9);
        state.counters["early"] = static_cast<double>(result.early) / static_cast<double>(operations);
    }
    observer.after();
}

std::vector<std::uint64_t> sizes_to_run(const options& options) {
    if (!options.sizes.empty()) return options.sizes;
    if (options.quick) return {1'000, 100'000, 1'000'000};
    return {1'000, 10'000, 100'000, 1'000'000, 10'000'000};
}

/// Whether a run tells enough to spend time on it when it was not asked for by name.
///
/// Ten million timers take some contenders minutes; there it is the reference, the best heap, the tree and the wheels
/// that show what there is to see. And the two ways to use Asio's timers differ only in arming.
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

}  // namespace

std::vector<contender_facts> all_contenders() {
    std::vector<contender_facts> facts;
    contenders::for_each([&]<class Contender>() {
        facts.push_back({std::string(Contender::name), Contender::version(), std::string(Contender::clock_reads)});
    });
    waiting_contenders::for_each([&]<class Contender>() {
        const auto is_same = [](const contender_facts& known) { return known.name == Contender::name; };
        if (std::any_of(facts.begin(), facts.end(), is_same)) return;
        facts.push_back({std::string(Contender::name), Contender::version(), std::string(Contender::clock_reads)});
    });
    return facts;
}

std::vector<workload_facts> all_workloads() {
    std::vector<workload_facts> facts;
    workloads::for_each([&]<class Workload>() {
        facts.push_back({std::string(Workload::name), std::string(Workload::one_operation)});
    });
    waiting_workloads::for_each([&]<class Workload>() {
        facts.push_back({std::string(Workload::name), std::string(Workload::one_operation)});
    });
    return facts;
}

std::size_t register_benchmarks(const options& options, const run_observer& observer) {
    std::size_t runs = 0;
    const auto add = [&]<class Workload, class Contender>(std::uint64_t timers) {
        const std::string name =
            std::string(Workload::name) + '/' + std::string(Contender::name) + '/' + std::to_string(timers);
        const unsigned repetitions = repetitions_to_run(options, timers);
        benchmark::RegisterBenchmark(name.c_str(),
                                     [name, timers, seed = options.seed, &observer](benchmark::State& state) {
                                         measure<Workload, Contender>(state, name, timers, seed, observer);
                                     })
            ->UseManualTime()
            ->Iterations(static_cast<benchmark::IterationCount>(Workload::operations(timers)))
            ->Repetitions(static_cast<int>(repetitions));
        runs += repetitions;
    };
    workloads::for_each([&]<class Workload>() {
        contenders::for_each([&]<class Contender>() {
            if (!is_chosen(options.workloads, Workload::name) || !is_chosen(options.contenders, Contender::name)) {
                return;
            }
            for (const std::uint64_t timers : sizes_to_run(options)) {
                if (!is_worthwhile<Workload, Contender>(options, timers)) continue;
                add.template operator()<Workload, Contender>(timers);
            }
        });
    });
    waiting_workloads::for_each([&]<class Workload>() {
        waiting_contenders::for_each([&]<class Contender>() {
            if (!is_chosen(options.workloads, Workload::name) || !is_chosen(options.contenders, Contender::name)) {
                return;
            }
            add.template operator()<Workload, Contender>(timers_a_second);
        });
    });
    return runs;
}

}  // namespace chime_bench
