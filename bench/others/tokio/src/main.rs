// SPDX-License-Identifier: MIT

//! The contender "tokio": its timers and tasks.
//!
//!     chime_bench_tokio version
//!     chime_bench_tokio WORKLOAD TIMERS OPERATIONS SEED THREADS
//!
//! What came of a run is written as lines: the time of all operations in nanoseconds, the error or an empty line, how many
//! timers were early, and a figure per line. Workloads, seeds and sizes are those of the C++ contenders.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, sleep_until, Sleep};

#[derive(Clone, Copy)]
struct Plan {
    timers: u64,
    operations: u64,
    seed: u64,
    threads: usize,
}

#[derive(Default)]
struct Outcome {
    elapsed_ns: i64,
    error: String,
    early: u64,
    figures: Vec<(&'static str, f64)>,
}

/// The same slots and delays as support/sequence.hpp draws.
struct Sequence(u64);

impl Sequence {
    fn next(&mut self) -> (u64, u64) {
        self.0 = self.0.wrapping_add(0x9e3779b97f4a7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d049bb133111eb);
        bits ^= bits >> 31;
        (bits >> 32, bits & 0xffffffff)
    }
}

#[derive(Clone, Copy)]
struct DelayRange(Duration, Duration);

impl DelayRange {
    fn at(self, fraction: u64) -> Duration {
        let steps = (self.1 - self.0).as_nanos() as u64 / 16;
        self.0 + Duration::from_nanos(((steps * fraction) >> 32) * 16)
    }
}

const MINUTE: DelayRange = DelayRange(Duration::from_millis(1), Duration::from_secs(60));
const SECOND_TO_MINUTE: DelayRange = DelayRange(Duration::from_secs(1), Duration::from_secs(60));

fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn status_bytes(key: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(key)).unwrap_or("");
    line.split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse::<f64>().ok()).unwrap_or(0.0) * 1024.0
}

/// A set of timers that one task arms, cancels and postpones. A Sleep is pending from its first poll on.
struct Lane {
    timers: Vec<Pin<Box<Sleep>>>,
    draws: Sequence,
    delays: DelayRange,
    armed: u64,
    cancelled: u64,
    fired: u64,
}

impl Lane {
    async fn new(count: u64, seed: u64, delays: DelayRange) -> Lane {
        let mut it = Lane { timers: Vec::new(), draws: Sequence(seed), delays, armed: 0, cancelled: 0, fired: 0 };
        for _ in 0..count {
            let (_, fraction) = it.draws.next();
            it.timers.push(Box::pin(sleep(delays.at(fraction))));
            it.start(it.timers.len() - 1).await;
            it.armed += 1;
        }
        it
    }

    /// Polls once, so that the timer is really armed.
    async fn start(&mut self, slot: usize) {
        std::future::poll_fn(|context| {
            let _ = self.timers[slot].as_mut().poll(context);
            Poll::Ready(())
        })
        .await;
    }

    /// Cancels a random timer and arms it anew, or moves it; reset() does both at once.
    async fn operate(&mut self, operations: u64, is_churn: bool) {
        for i in 0..operations {
            let (slot, fraction) = self.draws.next();
            let slot = ((self.timers.len() as u64 * slot) >> 32) as usize;
            if self.timers[slot].is_elapsed() {
                self.fired += 1;
                self.armed += 1;
            } else if is_churn {
                self.cancelled += 1;
                self.armed += 1;
            }
            let deadline = tokio::time::Instant::now() + self.delays.at(fraction);
            if is_churn {
                self.timers[slot].set(sleep_until(deadline));
            } else {
                self.timers[slot].as_mut().reset(deadline);
            }
            self.start(slot).await;
            if i % 64 == 63 {
                tokio::task::yield_now().await;
            }
        }
    }

    fn complaint(&self) -> String {
        let elapsed = self.timers.iter().filter(|timer| timer.is_elapsed()).count() as u64;
        let pending = self.timers.len() as u64 - elapsed;
        if self.armed == self.cancelled + self.fired + elapsed + pending {
            return String::new();
        }
        format!("armed {}, cancelled {}, fired {}, pending {}", self.armed, self.cancelled, self.fired + elapsed, pending)
    }
}

fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

fn many_threads(count: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(count).enable_time().build().unwrap()
}

fn steady(plan: Plan, delays: DelayRange, is_churn: bool) -> Outcome {
    one_thread().block_on(async {
        let mut lane = Lane::new(plan.timers, plan.seed, delays).await;
        lane.operate(plan.timers, is_churn).await;
        let start = processor_time();
        lane.operate(plan.operations, is_churn).await;
        let elapsed_ns = (processor_time() - start).as_nanos() as i64;
        Outcome { elapsed_ns, error: lane.complaint(), ..Outcome::default() }
    })
}

fn shared_churn(plan: Plan) -> Outcome {
    many_threads(plan.threads).block_on(async move {
        let barrier = Arc::new(tokio::sync::Barrier::new(plan.threads + 1));
        let tasks: Vec<_> = (0..plan.threads)
            .map(|which| {
                let barrier = barrier.clone();
                tokio::spawn(async move {
                    let mut lane = Lane::new(plan.timers, plan.seed + which as u64, MINUTE).await;
                    lane.operate(plan.timers, true).await;
                    barrier.wait().await;
                    lane.operate(plan.operations / plan.threads as u64, true).await;
                    lane.complaint()
                })
            })
            .collect();
        barrier.wait().await;
        let (start, spent) = (Instant::now(), processor_time());
        let mut error = String::new();
        for task in tasks {
            error += &task.await.unwrap();
        }
        let (elapsed, spent) = (start.elapsed().as_nanos() as f64, (processor_time() - spent).as_nanos() as f64);
        let figures = vec![("processor_ns", spent / plan.operations as f64), ("processors", spent / elapsed)];
        Outcome { elapsed_ns: elapsed as i64, error, figures, ..Outcome::default() }
    })
}

fn sleepers(plan: Plan) -> Outcome {
    let longest = Duration::from_secs(2);
    let delays = DelayRange(Duration::ZERO, longest);
    let before = status_bytes("VmRSS:");
    let woken = Arc::new(AtomicU64::new(0));
    let early = Arc::new(AtomicU64::new(0));
    let mut draws = Sequence(plan.seed);
    let start = Instant::now();
    many_threads(2).block_on(async {
        let mut tasks = Vec::new();
        for which in 0..plan.timers {
            let delay = delays.at(draws.next().1);
            let (woken, early) = (woken.clone(), early.clone());
            tasks.push(tokio::spawn(async move {
                let started = if which % 64 == 0 { Some(Instant::now()) } else { None };
                sleep(delay).await;
                if started.map_or(false, |at| at.elapsed() < delay) {
                    early.fetch_add(1, Ordering::Relaxed);
                }
                woken.fetch_add(1, Ordering::Relaxed);
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
    });
    let beyond = start.elapsed().as_secs_f64() - longest.as_secs_f64();
    let woken = woken.load(Ordering::Relaxed);
    let error = if woken == plan.timers { String::new() } else { format!("started {}, woken {}", plan.timers, woken) };
    let figures = vec![
        ("beyond_s", beyond),
        ("processor_s", processor_time().as_secs_f64()),
        ("peak_bytes", (status_bytes("VmHWM:") - before) / plan.timers as f64),
    ];
    Outcome { elapsed_ns: (beyond * 1e9) as i64, error, early: early.load(Ordering::Relaxed), figures }
}

fn lateness(plan: Plan) -> Outcome {
    let delays = DelayRange(Duration::from_millis(100), Duration::from_millis(1100));
    let mut draws = Sequence(plan.seed);
    let mut late: Vec<i64> = one_thread().block_on(async {
        let local = tokio::task::LocalSet::new();
        let tasks: Vec<_> = (0..plan.timers)
            .map(|_| {
                let delay = delays.at(draws.next().1);
                local.spawn_local(async move {
                    let deadline = Instant::now() + delay;
                    sleep_until(deadline.into()).await;
                    let now = Instant::now();
                    now.saturating_duration_since(deadline).as_nanos() as i64
                        - deadline.saturating_duration_since(now).as_nanos() as i64
                })
            })
            .collect();
        local
            .run_until(async {
                let mut late = Vec::new();
                for task in tasks {
                    late.push(task.await.unwrap());
                }
                late
            })
            .await
    });
    late.sort_unstable();
    let at = |thousandth: usize| late[late.len() * thousandth / 1000];
    let us = |ns: i64| ns as f64 / 1000.0;
    let figures = vec![
        ("earliest_us", us(late[0])),
        ("p10_us", us(at(100))),
        ("p50_us", us(at(500))),
        ("p90_us", us(at(900))),
        ("p99_us", us(at(990))),
        ("p999_us", us(at(999))),
    ];
    let early = late.iter().filter(|late| **late < 0).count() as u64;
    Outcome { elapsed_ns: at(500) * plan.operations as i64, early, figures, ..Outcome::default() }
}

fn spawn_and_join(plan: Plan) -> Outcome {
    let rounds = plan.operations / plan.timers;
    let (start, spent) = (Instant::now(), processor_time());
    let sum = many_threads(2).block_on(async move {
        tokio::spawn(async move {
            let mut sum = 0;
            let mut tasks = Vec::new();
            for _ in 0..rounds {
                tasks.extend((0..plan.timers).map(|number| tokio::spawn(async move { number })));
                for task in tasks.drain(..) {
                    sum += task.await.unwrap();
                }
            }
            sum
        })
        .await
        .unwrap()
    });
    let elapsed_ns = start.elapsed().as_nanos() as i64;
    let spent = (processor_time() - spent).as_nanos() as f64;
    let expected = rounds * (plan.timers * (plan.timers - 1) / 2);
    let error = if sum == expected { String::new() } else { format!("the answers make {sum}, not {expected}") };
    Outcome { elapsed_ns, error, figures: vec![("processor_ns", spent / plan.operations as f64)], ..Outcome::default() }
}

fn run(workload: &str, plan: Plan) -> Outcome {
    match workload {
        "timeout_churn" => steady(plan, MINUTE, true),
        "keep_alive" => steady(plan, SECOND_TO_MINUTE, false),
        "shared_churn" => shared_churn(plan),
        "sleepers" => sleepers(plan),
        "lateness" => lateness(plan),
        "spawn_and_join" => spawn_and_join(plan),
        "idle" => {
            // Whoever started this watches it and ends it.
            many_threads(2).block_on(async { sleep(Duration::from_secs(60)).await });
            Outcome::default()
        }
        _ => Outcome { error: format!("there is no workload {workload}"), ..Outcome::default() },
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["version"] {
        print!("{}", env!("TOKIO_VERSION"));
        return;
    }
    if arguments.len() != 5 {
        eprintln!("usage: chime_bench_tokio version | WORKLOAD TIMERS OPERATIONS SEED THREADS");
        std::process::exit(2);
    }
    let number = |i: usize| arguments[i].parse::<u64>().unwrap_or(0);
    let plan = Plan { timers: number(1), operations: number(2), seed: number(3), threads: number(4) as usize };
    let result = run(&arguments[0], plan);
    println!("{}\n{}\n{}", result.elapsed_ns, result.error, result.early);
    for (name, value) in result.figures {
        println!("{name} {value}");
    }
}
