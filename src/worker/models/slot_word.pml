/* SPDX-License-Identifier: MIT */
/* mutants: M_EPOCH_KEPT M_EPOCH_RESET M_IDLE_BLINDLY M_EARLY_DROPPED M_EARLY_CAUSE_LOST M_CLAIM_SPLIT M_FIRES_LOCKED */
/* mutants: M_RESUMES_LOCKED M_READY_THOUGH_LINKED M_PUSHES_LINKED M_FINISH_FREES_LINKED M_DRAIN_LOOKS_FIRST */
/* mutants: M_DOOM_UNSEEN M_DOOM_SILENT M_DOOM_ANYBODY */
/* mutants: M_TOLD_SLEEPS_ON M_TOLD_YIELDS_ON M_TOLD_UNMARKED M_STOP_UNSEEN M_SWEEP_STORES M_FIRES_TOLD */
/* mutants: M_DESTROYS_WAKEABLE M_LENT_WAIT_KEPT M_LENT_WAIT_STORES     */

/* The word of a task's slot: state_word.hpp, task_slot.hpp, worker_tasks.cpp, wake() and doom() in crew_tasks.cpp,
 * postpone_from_elsewhere() in crew_postpone.cpp, fire_one() and sweep() in worker.cpp and obey_one() in
 * worker_commands.cpp.
 *
 * Two tasks after one another in one slot. Each waits in all the ways there are: for a time, for ever until a token is
 * cancelled, for a completion, or only for its turn. What may wake it comes from other threads at any time, also when
 * that wait, or that task, is long over. Every wait ends once, for a reason that there was; no wake-up ends another
 * wait; no task is left waiting; the slot is not used again while it is linked or locked, and at the end it is free.
 *
 * Everything may stop, at any time: who sleeps is told, once, whoever else wakes it; who was told and sleeps once more is
 * destroyed where it stands, and nobody wakes it meanwhile. When a runtime closes, that goes for who yields, too. A task
 * may end while a coroutine that it has started beside itself sleeps in its place: that wait ends with it.
 *
 * What it leaves out:
 * - A task that goes to another crew, depart_to(): that is a second slot, and what is at stake is a mark by who cancels it
 *   on the way. See the scenarios task.goes_to_another_loop_and_can_be_cancelled_on_the_way in tests/shim/tasks_test.cpp
 *   and departure.* in tests/shim/departures_test.cpp.
 * - What destroy_pending() destroys with its crew: nobody else is there then, and the steps are those of destroy_task().
 *   See task.that_sleeps_deep_inside_of_others_ends_with_its_loop in tests/shim/waits_test.cpp.
 * - A sleep that is adopted after everything was stopped, which accept() tells: it has one owner here. See
 *   shutdown.* in tests/shim/runtime_test.cpp.
 * - A task that ends while the coroutine in its place is being woken, or told that everything stops, or waits on another
 *   worker in a later epoch: that is a misuse, and ends the program. Who was told before is not: see
 *   task.that_has_lent_its_wait_* in tests/runtime/last_moments_test.cpp, and tests/many/lent_waits_test.cpp.
 *
 * M_EPOCH_KEPT           a wait does not begin a new epoch
 * M_EPOCH_RESET          the next task in the slot counts its epochs from the beginning
 * M_IDLE_BLINDLY         the last step of suspending is a store
 * M_EARLY_DROPPED        who comes while the task is suspending does nothing
 * M_EARLY_CAUSE_LOST     a sleep that was woken early forgets by whom
 * M_CLAIM_SPLIT          the timer looks at the word and then stores
 * M_FIRES_LOCKED         the timer resumes a task whose deadline is being written
 * M_RESUMES_LOCKED       the ready queue resumes a task whose deadline is being written
 * M_READY_THOUGH_LINKED  the owner puts a task into the ready queue that is in the inbox
 * M_PUSHES_LINKED        a waker pushes a slot that is in the inbox
 * M_FINISH_FREES_LINKED  the end of a task gives back a slot that is in the inbox
 * M_DRAIN_LOOKS_FIRST    the drain looks at the word before it takes the link off
 * M_DOOM_UNSEEN          a task that begins to sleep does not look whether it was cancelled
 * M_DOOM_SILENT          cancelling a task does not wake it
 * M_DOOM_ANYBODY         cancelling does not ask whether the task still is in the slot
 * M_TOLD_SLEEPS_ON       a task that was told and sleeps again is told again
 * M_TOLD_YIELDS_ON       a task that was told yields for ever, though the runtime closes
 * M_TOLD_UNMARKED        who tells a sleeper that everything stops does not mark it as told
 * M_STOP_UNSEEN          a task that begins to sleep does not look whether everything has stopped
 * M_SWEEP_STORES         who tells a sleeper looks at the word and then stores
 * M_FIRES_TOLD           the timer resumes a sleeper that was told and is on its way
 * M_DESTROYS_WAKEABLE    the word does not say that the task is being destroyed
 * M_LENT_WAIT_KEPT       the end of a task leaves the timer of who waits in its place
 * M_LENT_WAIT_STORES      the end of a task looks at the word of who waits in its place and then stores
 */

#define VACANT 0
#define EXECUTING 1
#define SUSPENDING 2
#define IDLE 3
#define WOKEN_EARLY 4
#define SCHEDULED 5
#define PHASE 7
#define LINKED 8
#define BY_TIMER 0
#define BY_CANCEL 16
#define BY_COMPLETION 32
#define BY_SHUTDOWN 48
#define CAUSE 48
#define DOOMED 64
#define TOLD 128
#define LOCKED 256
#define MOVED 512
#define ONE_EPOCH 1024

#define phase_of(value) ((value) & PHASE)
#define cause_of(value) ((value) & CAUSE)
#define epoch_of(value) ((value) / ONE_EPOCH)
#define with_phase(value, phase) (((value) & ~PHASE) | (phase))
#define with_cause(value, cause) (((value) & ~CAUSE) | (cause))

#define TASKS 2
#define WAITS 2       /* Of the first task; the others wait once. */
#define EPOCHS 8

int word = VACANT;
bool is_timed = false;     /* The wait has a deadline: the slot has an arming number. */
bool has_ticket = false;
bool is_pushed = false;    /* Its link is in use by the inbox. */
bool is_ready = false;     /* Its link is in use by the ready queue. */
bool is_free = true;
bool control_is_locked = false;
byte control = 0;          /* The task that can be cancelled; 0: it has ended. */
bool is_stopped = false;
bool is_closing = false;
bool is_swept = false;
byte others = 0;

/* What an observer knows. */
byte task = 0;
byte asked[EPOCHS];        /* The causes that there were, a bit for each. */
byte ended_waits[EPOCHS];
bool was_doomed = false;
bool is_barred = false;    /* The task was told before this wait: it must not come out of it. */
bool is_destroyed = false;
byte lent = 0;             /* The wait that ended with the task, because somebody else was in its place; 0: none. */
bool stops = false;        /* Everything stops some day. */
byte guests_left = 2;      /* How many more threads may take part, for the size of it. */

inline swap(v, n) {
    atomic {
        if
        :: word == v -> word = n; won = true
        :: else -> v = word; won = false
        fi
    }
}

inline push() { atomic { assert(!is_pushed && !is_ready); is_pushed = true } }
inline make_ready() { atomic { assert(!is_pushed && !is_ready); is_ready = true } }

inline give_back() {
    atomic {
        assert(!is_free && !is_pushed && !is_ready && !is_timed && !has_ticket);
        assert((word & (PHASE | LINKED | LOCKED)) == 0);
        is_free = true
    }
}

/* --- Other threads. */

/* wake(), from elsewhere. */
inline wake(epoch, cause, who) {
    v = word;
    do
    :: epoch_of(v) != epoch -> break
    :: epoch_of(v) == epoch && phase_of(v) == IDLE ->
       pushes = !(v & LINKED);
       n = with_cause(with_phase(v, SCHEDULED), cause) | LINKED;  /* [slot_word: wake] */
       atomic {
           if
           :: word == v -> word = n; assert(task == who && !is_destroyed); won = true
           :: else -> v = word; won = false
           fi
       };
       if
#ifdef M_PUSHES_LINKED
       :: won -> push(); break
#else
       :: won && pushes -> push(); break
       :: won && !pushes -> break
#endif
       :: else -> skip
       fi
#ifndef M_EARLY_DROPPED
    :: epoch_of(v) == epoch && phase_of(v) == SUSPENDING ->
       n = with_cause(with_phase(v, WOKEN_EARLY), cause);  /* [slot_word: wake early] */
       atomic {
           if
           :: word == v -> word = n; assert(task == who && !is_destroyed); won = true
           :: else -> v = word; won = false
           fi
       };
       if
       :: won -> break
       :: else -> skip
       fi
#endif
    :: else -> break
    od
}

/* A token that is cancelled, or a completion. */
proctype source(byte epoch; byte cause; byte who) {
    int v, n;
    bool won, pushes;
    asked[epoch] = asked[epoch] | (1 << (cause / 16));
    wake(epoch, cause, who);
    others--
}

/* task_control::cancel() and doom(). */
proctype doomer(byte who) {
    int v, n;
    byte epoch;
    bool won, pushes;
#ifdef M_DOOM_ANYBODY
    if
    :: true ->
#else
    atomic { !control_is_locked -> control_is_locked = true };
    if
    :: control == who ->
#endif
       atomic { v = word; word = word | DOOMED; assert(task == who); was_doomed = true };  /* [slot_word: doom] */
#ifndef M_DOOM_SILENT
       if
       /* [slot_word: wake doomed] */
       :: phase_of(v) == IDLE && is_timed -> epoch = epoch_of(v); wake(epoch, BY_CANCEL, who)
       :: else -> skip
       fi
#endif
    :: else -> skip
    fi;
    control_is_locked = false;
    others--
}

/* Postpones the sleep, to earlier or to later. */
proctype postponer(byte epoch) {
    int v, n;
    bool won, pushes, is_earlier;
    if
    :: is_earlier = true
    :: is_earlier = false
    fi;
    v = word;
    do
    :: epoch_of(v) != epoch || phase_of(v) != IDLE -> goto done
    :: else ->
       n = v | LOCKED;  /* [slot_word: lock] */
       swap(v, n);
       if
       :: won -> break
       :: else -> skip
       fi
    od;
    /* Here it writes the deadline: it has to be that of the wait which it was asked to postpone, or of nothing any more. */
    assert((epoch_of(word) == epoch && phase_of(word) != EXECUTING) || epoch == lent);
    v = word;
    do
    :: pushes = ((is_earlier && phase_of(v) == IDLE) || phase_of(v) == VACANT) && !(v & LINKED);
       n = (v & ~LOCKED) | (phase_of(v) == IDLE -> MOVED : 0) | (pushes -> LINKED : 0);  /* [slot_word: unlock] */
       swap(v, n);
       if
       :: won && pushes -> push(); break
       :: won && !pushes -> break
       :: else -> skip
       fi
    od;
done:
    others--
}

/* Everything stops; a runtime is closed with that, a context is not. */
proctype stopper() {
    is_stopped = true;
    if
    :: is_closing = true
    :: true -> skip
    fi;
    others--
}

/* --- The owner. */

inline obey() {
    is_pushed = false;
#ifdef M_DRAIN_LOOKS_FIRST
    v = word & ~LINKED;
    word = word & ~LINKED;
#else
    atomic { word = word & ~LINKED; v = word };  /* [slot_word: unlink] */
#endif
    if
    :: phase_of(v) == SCHEDULED -> make_ready()
    :: phase_of(v) == IDLE && is_timed -> word = word & ~MOVED  /* [slot_word: accept] */
    :: phase_of(v) == VACANT && !(v & LOCKED) -> give_back()  /* [slot_word: give back] */
    :: else -> skip
    fi
}

/* The wait is over: once, and for a reason that there was. */
inline end_wait(cause) {
    d_step {
        is_timed = false;
        has_ticket = false;
        ended_waits[epoch_of(word)]++;
        assert(ended_waits[epoch_of(word)] == 1 && !is_barred);
        assert((asked[epoch_of(word)] & (1 << ((cause) / 16))) || ((cause) == BY_CANCEL && was_doomed) ||
               ((cause) == BY_SHUTDOWN && is_stopped && (word & TOLD)))
    };
    executes = true
}

/* The task is through, and so is its slot, unless somebody holds on to it. */
inline finish() {
    executes = false;
    is_barred = false;
    atomic { !control_is_locked -> control = 0 };
    v = word;
    do
    :: n = (epoch_of(v) + 1) * ONE_EPOCH + (v & (LINKED | LOCKED));  /* [slot_word: finish] */
       atomic {
           if
           :: word == v -> word = n; task = 0; is_destroyed = false; won = true
           :: else -> v = word; won = false
           fi
       };
       if
       :: won -> break
       :: else -> skip
       fi
    od;
    if
#ifdef M_FINISH_FREES_LINKED
    :: true -> give_back()
#else
    :: !(n & (LINKED | LOCKED)) -> give_back()
    :: else -> skip
#endif
    fi
}

/* destroy_task(), of one that was told before. Since then nobody holds on to it: what is told while it is linked or locked
 * goes on when it is not. Whatever mark comes in between does not matter any more, so a store will do. */
inline destroy() {
    v = word;
    assert(!(word & (LINKED | LOCKED)));
    atomic {
        is_timed = false;
        has_ticket = false;
#ifndef M_DESTROYS_WAKEABLE
        word = (epoch_of(v) + 1) * ONE_EPOCH + EXECUTING + (v & LINKED);  /* [slot_word: destroy] */
#endif
        is_destroyed = true
    };
    finish()
}

/* end_lent_wait(): the task ends, and a coroutine beside it sleeps in its place. */
inline end_lent_wait() {
    v = word;
    do
    :: phase_of(v) == IDLE && epoch_of(v) == lent ->
       n = with_phase(v, EXECUTING);  /* [slot_word: end lent wait] */
#ifdef M_LENT_WAIT_STORES
       atomic { word = n; won = true };
#else
       swap(v, n);
#endif
       if
       :: won ->
#ifndef M_LENT_WAIT_KEPT
          atomic { is_timed = false; has_ticket = false };
#endif
          break
       :: else -> skip
       fi
    :: else -> goto misused
    od
}

/* The last step of suspending; only the task itself is here. */
inline commit() {
    v = word;
    do
    :: phase_of(v) == WOKEN_EARLY && !is_timed ->
       n = with_phase(v, EXECUTING);  /* [slot_word: go on] */
       swap(v, n);
       if
       :: won -> end_wait(cause_of(n)); break
       :: else -> skip
       fi
    :: else ->
       is_stopping = is_stopped;
       if
#ifndef M_TOLD_SLEEPS_ON
       :: is_timed && is_stopping && (v & TOLD) -> destroy(); break  /* [slot_word: condemn] */
#endif
       :: else -> skip
       fi;
#ifdef M_DOOM_UNSEEN
       is_over = is_timed && (phase_of(v) == WOKEN_EARLY || is_stopping);
#elif defined(M_STOP_UNSEEN)
       is_over = is_timed && (phase_of(v) == WOKEN_EARLY || (v & DOOMED));
#else
       is_over = is_timed && (phase_of(v) == WOKEN_EARLY || (v & DOOMED) || is_stopping);
#endif
       if
       :: is_over ->
          n = with_phase(v, SCHEDULED);  /* [slot_word: over at once] */
#ifdef M_EARLY_CAUSE_LOST
          n = with_cause(n, BY_COMPLETION);
#else
          n = (phase_of(v) == WOKEN_EARLY -> n : with_cause(n, (v & DOOMED -> BY_CANCEL : BY_SHUTDOWN)));
#endif
          n = n | (is_stopped -> TOLD : 0);
          swap(v, n);
          if
#ifdef M_READY_THOUGH_LINKED
          :: won -> make_ready(); break
#else
          :: won && !(n & LINKED) -> make_ready(); break
          :: won && (n & LINKED) -> break
#endif
          :: else -> skip
          fi
       :: else ->
#ifdef M_IDLE_BLINDLY
          atomic { word = with_phase(word, IDLE); won = true };
#else
          n = with_phase(v, IDLE);  /* [slot_word: commit] */
          swap(v, n);
#endif
          if
          :: won -> break
          :: else -> skip
          fi
       fi
    od;
    is_over = false;
    is_stopping = false
}

/* Who was told must not come out of a sleep that begins now. Whether it is one is known before anybody looks. */
inline begin_suspension(is_sleep) {
    atomic {
        is_barred = is_sleep && (word & TOLD);
        is_timed = is_sleep;
#ifdef M_EPOCH_KEPT
        word = word + SUSPENDING - EXECUTING;
        ended_waits[epoch_of(word)] = 0;
#else
        word = word + ONE_EPOCH + SUSPENDING - EXECUTING;  /* [slot_word: suspend] */
#endif
        epoch = epoch_of(word)
    }
}

inline start_postponer() {
    if
    :: guests_left > 0 -> atomic { guests_left--; others++; run postponer(epoch) }
    :: true -> skip
    fi
}

/* One wait of the task that is executing. */
inline wait() {
    executes = false;
    if
    :: /* For a time. */
       begin_suspension(true);
       has_ticket = true;
       if
       :: guests_left > 0 -> atomic { guests_left--; others++; run source(epoch, BY_CANCEL, task) }
       :: true -> skip
       fi;
       start_postponer();
       commit()
    :: guests_left > 0 || dooms || stops ->
       /* For ever, until the token or the task is cancelled, or everything stops. */
       begin_suspension(true);
       if
       :: guests_left > 0 -> atomic { guests_left--; others++; run source(epoch, BY_CANCEL, task) }
       :: dooms || stops -> skip
       fi;
       start_postponer();
       commit()
    :: guests_left > 0 ->
       /* For a completion. */
       begin_suspension(false);
       atomic { guests_left--; others++; run source(epoch, BY_COMPLETION, task) };
       commit()
    :: /* For its turn. */
       atomic { v = word; is_barred = is_closing && (v & TOLD) };
       is_stopping = is_closing;
       if
#ifndef M_TOLD_YIELDS_ON
       :: is_stopping && (v & TOLD) -> destroy()  /* [slot_word: condemn yielding] */
#endif
       :: else ->
          do
          /* [slot_word: yield] */
          :: n = with_cause(with_phase(v + ONE_EPOCH, SCHEDULED), BY_COMPLETION) | (is_stopping -> TOLD : 0);
             swap(v, n);
             if
             :: won -> break
             :: else -> skip
             fi
          od;
          asked[epoch_of(n)] = asked[epoch_of(n)] | (1 << (BY_COMPLETION / 16));
          if
#ifdef M_READY_THOUGH_LINKED
          :: true -> make_ready()
#else
          :: !(n & LINKED) -> make_ready()
          :: else -> skip
#endif
          fi
       fi;
       is_stopping = false
    fi
}

/* The last thing that a task does: a coroutine that it starts beside itself sleeps in its place, and it ends. */
inline lend_wait() {
    executes = false;
    begin_suspension(true);
    lent = epoch;
    has_ticket = true;
    start_postponer();
    commit();
    end_lent_wait();
    finish()
}

/* A task begins in the slot, as if it had just been woken. */
inline spawn() {
    d_step {
        is_free = false;
        assert((word & (PHASE | LINKED | LOCKED)) == 0 && !is_pushed && !is_ready);
        begun++;
        task = begun;
        control = begun;
        was_doomed = false;
        waits_left = (begun == 1 -> WAITS : 1);
#ifdef M_EPOCH_RESET
        word = 0;
        epoch = 0;
        do
        :: epoch < EPOCHS -> ended_waits[epoch] = 0; asked[epoch] = 0; epoch++
        :: else -> break
        od;
        epoch = 0;
#endif
        asked[epoch_of(word)] = 1 << (BY_COMPLETION / 16);
        ended_waits[epoch_of(word)] = 0;
        word = with_cause(with_phase(word, SCHEDULED), BY_COMPLETION);  /* [slot_word: spawn] */
        is_ready = true
    };
    dooms = false;
    if
    :: atomic { begun == 1 && guests_left > 0 -> dooms = true; guests_left--; others++; run doomer(begun) }
    :: skip
    fi;
    if
    :: atomic { begun == 1 && guests_left > 0 -> stops = true; guests_left--; others++; run stopper() }
    :: skip
    fi
}

inline run_scheduled() {
    is_ready = false;
    v = word;
    do
    :: assert(phase_of(v) == SCHEDULED);
       if
#ifndef M_RESUMES_LOCKED
       :: v & LOCKED -> make_ready(); break  /* [slot_word: put back] */
#endif
       :: else ->
          n = with_phase(v, EXECUTING) & ~MOVED;  /* [slot_word: resume] */
          swap(v, n);
          if
          :: won -> end_wait(cause_of(n)); break
          :: else -> skip
          fi
       fi
    od
}

/* The time has come, as far as the wheel knows. */
inline fire() {
    v = word;
    if
#ifdef M_FIRES_TOLD
    :: phase_of(v) == SCHEDULED && cause_of(v) == BY_SHUTDOWN ->
       n = with_cause(with_phase(v, EXECUTING), BY_TIMER);
       asked[epoch_of(n)] = asked[epoch_of(n)] | (1 << (BY_TIMER / 16));
       swap(v, n);
       if
       :: won -> end_wait(BY_TIMER)
       :: else -> skip
       fi
    :: phase_of(v) != IDLE && !(phase_of(v) == SCHEDULED && cause_of(v) == BY_SHUTDOWN) -> has_ticket = false
#else
    :: phase_of(v) != IDLE -> has_ticket = false
#endif
    :: phase_of(v) == IDLE ->
       assert(!is_swept);      /* All were told. */
       if
#ifndef M_FIRES_LOCKED
       :: v & LOCKED -> skip  /* [slot_word: defer] */
       :: !(v & LOCKED) && (v & MOVED) -> n = v & ~MOVED; swap(v, n)  /* [slot_word: look again] */
       :: !(v & (LOCKED | MOVED)) ->
#else
       :: v & MOVED -> n = v & ~MOVED; swap(v, n)
       :: !(v & MOVED) ->
#endif
          if
          :: n = with_cause(with_phase(v, EXECUTING), BY_TIMER)  /* [slot_word: fire] */
          :: n = with_cause(with_phase(v, SCHEDULED), BY_TIMER)   /* Inline resumption is off. */
          fi;
#ifdef M_CLAIM_SPLIT
          atomic { word = n; won = true };
#else
          swap(v, n);
#endif
          if
          :: won ->
             has_ticket = false;
             asked[epoch_of(n)] = asked[epoch_of(n)] | (1 << (BY_TIMER / 16));
             if
             :: phase_of(n) == EXECUTING -> end_wait(BY_TIMER)
#ifdef M_READY_THOUGH_LINKED
             :: phase_of(n) == SCHEDULED -> make_ready()
#else
             :: phase_of(n) == SCHEDULED && !(n & LINKED) -> make_ready()
             :: else -> skip
#endif
             fi
          :: else -> skip
          fi
       fi
    fi
}

/* sweep(): everything stops, and who sleeps is told; wake(), by its owner. */
inline sweep() {
    v = word;
    if
    :: phase_of(v) == IDLE && is_timed ->
       epoch = epoch_of(v);
       do
       :: epoch_of(v) == epoch && phase_of(v) == IDLE ->
#ifdef M_TOLD_UNMARKED
          n = with_cause(with_phase(v, SCHEDULED), BY_SHUTDOWN);
#else
          n = with_cause(with_phase(v, SCHEDULED), BY_SHUTDOWN) | TOLD;  /* [slot_word: tell] */
#endif
#ifdef M_SWEEP_STORES
          atomic { word = n; won = true };
#else
          swap(v, n);
#endif
          if
          :: won && !(n & LINKED) -> make_ready(); break
          :: won && (n & LINKED) -> break
          :: else -> skip
          fi
       :: else -> break
       od
    :: else -> skip
    fi;
    is_swept = true
}

active proctype owner() {
    int v, n;
    byte epoch, begun, waits_left;
    bool won, executes, dooms, is_stopping, is_over;
    do
    :: executes && waits_left > 0 -> waits_left--; wait()
    :: executes && waits_left == 1 && begun == 1 && !stops -> waits_left--; lend_wait()
    :: executes && waits_left == 0 -> finish()
    :: !executes && is_pushed -> obey()
    :: !executes && is_ready -> run_scheduled()
    :: !executes && has_ticket -> fire()
    :: !executes && is_stopped && !is_swept -> sweep()
    :: !executes && is_free && begun < TASKS && !is_stopped -> spawn()
    :: atomic { is_free && (begun == TASKS || is_stopped) && others == 0 && !is_pushed -> break }
    od;
    assert(is_free && !is_ready && control == 0);
misused:
    skip
}
