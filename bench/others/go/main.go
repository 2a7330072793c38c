// SPDX-License-Identifier: MIT

// The contender "go": the timers and goroutines of Go's runtime.
//
//	chime_bench_go version
//	chime_bench_go WORKLOAD TIMERS OPERATIONS SEED THREADS
//
// What came of a run is written as lines: the time of all operations in nanoseconds, the error or an empty line, how many
// timers were early, and a figure per line. Workloads, seeds and sizes are those of the C++ contenders.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

type plan struct {
	timers, operations, seed uint64
	threads                  int
}

type figure struct {
	name  string
	value float64
}

type outcome struct {
	elapsed time.Duration
	err     string
	early   uint64
	figures []figure
}

// The same slots and delays as support/sequence.hpp draws.
type sequence struct{ state uint64 }

func (s *sequence) next() (slotFraction, delayFraction uint64) {
	s.state += 0x9e3779b97f4a7c15
	bits := s.state
	bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9
	bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb
	bits ^= bits >> 31
	return bits >> 32, bits & 0xffffffff
}

type delayRange struct{ shortest, longest time.Duration }

func (r delayRange) at(fraction uint64) time.Duration {
	steps := uint64(r.longest-r.shortest) / 16
	return r.shortest + time.Duration(((steps*fraction)>>32)*16)
}

func processorTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func statusBytes(key string) float64 {
	text, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, key) {
			kilobytes, _ := strconv.ParseFloat(strings.Fields(line)[1], 64)
			return kilobytes * 1024
		}
	}
	return 0
}

// A set of timers that one goroutine arms, cancels and postpones. Every arm makes a new timer: one that was stopped and is
// used again keeps the scheduler of Go 1.19 busy looking for it.
type lane struct {
	timers                                []*time.Timer
	draws                                 sequence
	delays                                delayRange
	fired                                 *uint64
	armed, cancelled, postponed, operated uint64
}

func newLane(count, seed uint64, delays delayRange, fired *uint64) *lane {
	it := &lane{timers: make([]*time.Timer, count), draws: sequence{seed}, delays: delays, fired: fired}
	for slot := range it.timers {
		_, fraction := it.draws.next()
		it.arm(slot, fraction)
	}
	return it
}

func (it *lane) arm(slot int, fraction uint64) {
	it.timers[slot] = time.AfterFunc(it.delays.at(fraction), func() { atomic.AddUint64(it.fired, 1) })
	it.armed++
}

func (it *lane) churn(operations uint64) {
	for i := uint64(0); i < operations; i++ {
		slot, fraction := it.draws.next()
		slot = uint64(len(it.timers)) * slot >> 32
		if it.timers[slot].Stop() {
			it.cancelled++
		}
		it.arm(int(slot), fraction)
		if i%64 == 63 {
			runtime.Gosched()
		}
	}
}

func (it *lane) postpone(operations uint64) {
	for i := uint64(0); i < operations; i++ {
		slot, fraction := it.draws.next()
		if it.timers[uint64(len(it.timers))*slot>>32].Reset(it.delays.at(fraction)) {
			it.postponed++
		} else {
			it.armed++
		}
		if i%64 == 63 {
			runtime.Gosched()
		}
	}
}

// Cancels what is left; how many that were.
func (it *lane) empty() (pending uint64) {
	for _, timer := range it.timers {
		if timer.Stop() {
			pending++
		}
	}
	return pending
}

func complaint(lanes []*lane, fired *uint64) string {
	var armed, cancelled, pending uint64
	for _, it := range lanes {
		pending += it.empty()
		armed += it.armed
		cancelled += it.cancelled
	}
	time.Sleep(50 * time.Millisecond) // For callbacks that have been started, but have not run.
	if armed != cancelled+pending+atomic.LoadUint64(fired) {
		return fmt.Sprintf("armed %d, cancelled %d, fired %d, pending %d", armed, cancelled, *fired, pending)
	}
	return ""
}

var minute = delayRange{time.Millisecond, time.Minute}
var secondToMinute = delayRange{time.Second, time.Minute}

func steady(p plan, delays delayRange, operate func(*lane, uint64)) outcome {
	runtime.GOMAXPROCS(1)
	var fired uint64
	it := newLane(p.timers, p.seed, delays, &fired)
	// Moving timers among very many takes so long that fewer must do.
	count := p.operations
	if p.timers >= 100000 && count > 200000 {
		count = 200000
	}
	operate(it, count)
	start := processorTime()
	operate(it, count)
	elapsed := (processorTime() - start) * time.Duration(p.operations/count)
	return outcome{elapsed: elapsed, err: complaint([]*lane{it}, &fired)}
}

func sharedChurn(p plan) outcome {
	runtime.GOMAXPROCS(p.threads)
	fired := make([]uint64, p.threads*8)
	lanes := make([]*lane, p.threads)
	var warm, done sync.WaitGroup
	begin := make(chan struct{})
	for which := range lanes {
		warm.Add(1)
		done.Add(1)
		go func(which int) {
			lanes[which] = newLane(p.timers, p.seed+uint64(which), minute, &fired[0])
			lanes[which].churn(p.timers)
			warm.Done()
			<-begin
			lanes[which].churn(p.operations / uint64(p.threads))
			done.Done()
		}(which)
	}
	warm.Wait()
	spent, start := processorTime(), time.Now()
	close(begin)
	done.Wait()
	elapsed, spent := time.Since(start), processorTime()-spent
	return outcome{elapsed: elapsed, err: complaint(lanes, &fired[0]), figures: []figure{
		{"processor_ns", float64(spent) / float64(p.operations)}, {"processors", float64(spent) / float64(elapsed)}}}
}

func sleepers(p plan) outcome {
	draws := sequence{p.seed}
	delays := delayRange{0, 2 * time.Second}
	before := statusBytes("VmRSS:")
	var woken, early uint64
	var all sync.WaitGroup
	all.Add(int(p.timers))
	start := time.Now()
	for i := uint64(0); i < p.timers; i++ {
		_, fraction := draws.next()
		go func(which uint64, delay time.Duration) {
			var started time.Time
			if which%64 == 0 {
				started = time.Now()
			}
			time.Sleep(delay)
			if which%64 == 0 && time.Since(started) < delay {
				atomic.AddUint64(&early, 1)
			}
			atomic.AddUint64(&woken, 1)
			all.Done()
		}(i, delays.at(fraction))
	}
	all.Wait()
	beyond := time.Since(start) - delays.longest
	result := outcome{elapsed: beyond, early: early, figures: []figure{{"beyond_s", beyond.Seconds()},
		{"processor_s", processorTime().Seconds()}, {"peak_bytes", (statusBytes("VmHWM:") - before) / float64(p.timers)}}}
	if woken != p.timers {
		result.err = fmt.Sprintf("started %d sleepers, woken %d", p.timers, woken)
	}
	return result
}

func lateness(p plan) outcome {
	draws := sequence{p.seed}
	delays := delayRange{100 * time.Millisecond, 1100 * time.Millisecond}
	late := make([]time.Duration, p.timers)
	var all sync.WaitGroup
	all.Add(int(p.timers))
	for i := range late {
		_, fraction := draws.next()
		delay := delays.at(fraction)
		it, deadline := &late[i], time.Now().Add(delay)
		time.AfterFunc(delay, func() {
			*it = time.Since(deadline)
			all.Done()
		})
	}
	all.Wait()
	sort.Slice(late, func(a, b int) bool { return late[a] < late[b] })
	at := func(thousandth int) time.Duration { return late[len(late)*thousandth/1000] }
	us := func(d time.Duration) float64 { return float64(d) / 1000 }
	early := sort.Search(len(late), func(i int) bool { return late[i] >= 0 })
	return outcome{elapsed: at(500) * time.Duration(p.operations), early: uint64(early), figures: []figure{
		{"earliest_us", us(late[0])}, {"p10_us", us(at(100))}, {"p50_us", us(at(500))}, {"p90_us", us(at(900))},
		{"p99_us", us(at(990))}, {"p999_us", us(at(999))}}}
}

func spawnAndJoin(p plan) outcome {
	answers := make(chan uint64, p.timers)
	spent, start := processorTime(), time.Now()
	var sum uint64
	for round := uint64(0); round < p.operations/p.timers; round++ {
		for i := uint64(0); i < p.timers; i++ {
			go func(number uint64) { answers <- number }(i)
		}
		for i := uint64(0); i < p.timers; i++ {
			sum += <-answers
		}
	}
	elapsed := time.Since(start)
	result := outcome{elapsed: elapsed, figures: []figure{
		{"processor_ns", float64(processorTime()-spent) / float64(p.operations)}}}
	if expected := p.operations / p.timers * (p.timers * (p.timers - 1) / 2); sum != expected {
		result.err = fmt.Sprintf("the answers make %d, not %d", sum, expected)
	}
	return result
}

func run(workload string, p plan) outcome {
	switch workload {
	case "timeout_churn":
		return steady(p, minute, (*lane).churn)
	case "keep_alive":
		return steady(p, secondToMinute, (*lane).postpone)
	case "shared_churn":
		return sharedChurn(p)
	case "sleepers":
		return sleepers(p)
	case "lateness":
		return lateness(p)
	case "spawn_and_join":
		return spawnAndJoin(p)
	case "idle": // Whoever started this watches it and ends it.
		<-time.After(time.Minute)
	}
	return outcome{err: "there is no workload " + workload}
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "version" {
		fmt.Print(strings.TrimPrefix(runtime.Version(), "go"))
		return
	}
	if len(os.Args) != 6 {
		fmt.Fprintln(os.Stderr, "usage: chime_bench_go version | WORKLOAD TIMERS OPERATIONS SEED THREADS")
		os.Exit(2)
	}
	var numbers [4]uint64
	for i := range numbers {
		numbers[i], _ = strconv.ParseUint(os.Args[i+2], 10, 64)
	}
	result := run(os.Args[1], plan{numbers[0], numbers[1], numbers[2], int(numbers[3])})
	fmt.Printf("%d\n%s\n%d\n", result.elapsed.Nanoseconds(), result.err, result.early)
	for _, each := range result.figures {
		fmt.Printf("%s %g\n", each.name, each.value)
	}
}
