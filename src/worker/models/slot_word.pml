/* SPDX-License-Identifier: MIT */
/* mutants: M_EPOCH_KEPT M_EPOCH_RESET M_IDLE_BLINDLY M_EARLY_DROPPED M_EARLY_CAUSE_LOST M_CLAIM_SPLIT M_FIRES_LOCKED */
/* mutants: M_RESUMES_LOCKED M_READY_THOUGH_LINKED M_PUSHES_LINKED M_FINISH_FREES_LINKED M_DRAIN_LOOKS_FIRST */
/* mutants: M_DOOM_UNSEEN M_DOOM_SILENT M_DOOM_ANYBODY */

/* The word of a task's slot: state_word.hpp, task_slot.hpp, worker_tasks.cpp, wake() and doom() in crew_tasks.cpp,
 * postpone_from_elsewhere() in crew_postpone.cpp, fire_one() in worker.cpp and obey_one() in worker_commands.cpp.
 *
 * Two tasks after one another in one slot. Each waits in all the ways there are: for a time, for ever until a token is
 * cancelled, for a completion, or only for its turn. What may wake it comes from other threads at any time, also when
 * that wait, or that task, is long over. Every wait ends once, for a reason that there was; no wake-up ends another
 * wait; no task is left waiting; the slot is not used again while it is linked or locked, and at the end it is free.
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
#define CAUSE 48
#define DOOMED 64
#define LOCKED 128
#define MOVED 256
#define ONE_EPOCH 512

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
byte others = 0;

/* What an observer knows. */
byte task = 0;
byte asked[EPOCHS];        /* The causes that there were, a bit for each. */
byte ended_waits[EPOCHS];
bool was_doomed = false;
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
        assert(!is_free && !is_pushed && !is_ready);
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
       n = with_cause(with_phase(v, SCHEDULED), cause) | LINKED;
       atomic {
           if
           :: word == v -> word = n; assert(task == who); won = true
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
       n = with_cause(with_phase(v, WOKEN_EARLY), cause);
       atomic {
           if
           :: word == v -> word = n; assert(task == who); won = true
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
       atomic { v = word; word = word | DOOMED; assert(task == who); was_doomed = true };
#ifndef M_DOOM_SILENT
       if
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
       n = v | LOCKED;
       swap(v, n);
       if
       :: won -> break
       :: else -> skip
       fi
    od;
    /* Here it writes the deadline: it has to be that of the wait which it was asked to postpone. */
    assert(epoch_of(word) == epoch && phase_of(word) != EXECUTING);
    v = word;
    do
    :: pushes = ((is_earlier && phase_of(v) == IDLE) || phase_of(v) == VACANT) && !(v & LINKED);
       n = (v & ~LOCKED) | (phase_of(v) == IDLE -> MOVED : 0) | (pushes -> LINKED : 0);
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

/* --- The owner. */

inline obey() {
    is_pushed = false;
#ifdef M_DRAIN_LOOKS_FIRST
    v = word & ~LINKED;
    word = word & ~LINKED;
#else
    atomic { word = word & ~LINKED; v = word };
#endif
    if
    :: phase_of(v) == SCHEDULED -> make_ready()
    :: phase_of(v) == IDLE && (v & MOVED) -> word = word & ~MOVED
    :: phase_of(v) == VACANT && !(v & LOCKED) -> give_back()
    :: else -> skip
    fi
}

/* The wait is over: once, and for a reason that there was. */
inline end_wait(cause) {
    d_step {
        is_timed = false;
        has_ticket = false;
        ended_waits[epoch_of(word)]++;
        assert(ended_waits[epoch_of(word)] == 1);
        assert((asked[epoch_of(word)] & (1 << ((cause) / 16))) || ((cause) == BY_CANCEL && was_doomed))
    };
    executes = true
}

/* The last step of suspending; only the task itself is here. */
inline commit() {
    v = word;
    do
    :: phase_of(v) == WOKEN_EARLY && !is_timed ->
       n = with_phase(v, EXECUTING);
       swap(v, n);
       if
       :: won -> end_wait(cause_of(n)); break
       :: else -> skip
       fi
#ifdef M_DOOM_UNSEEN
    :: phase_of(v) == WOKEN_EARLY && is_timed ->
#else
    :: is_timed && (phase_of(v) == WOKEN_EARLY || (v & DOOMED)) ->
#endif
       n = with_phase(v, SCHEDULED);
#ifdef M_EARLY_CAUSE_LOST
       n = with_cause(n, BY_COMPLETION);
#else
       n = (phase_of(v) == WOKEN_EARLY -> n : with_cause(n, BY_CANCEL));
#endif
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
#ifdef M_DOOM_UNSEEN
    :: phase_of(v) == SUSPENDING ->
#else
    :: phase_of(v) == SUSPENDING && !(is_timed && (v & DOOMED)) ->
#endif
#ifdef M_IDLE_BLINDLY
       atomic { word = with_phase(word, IDLE); won = true };
#else
       n = with_phase(v, IDLE);
       swap(v, n);
#endif
       if
       :: won -> break
       :: else -> skip
       fi
    od
}

inline begin_suspension() {
#ifdef M_EPOCH_KEPT
    atomic { word = word + SUSPENDING - EXECUTING; epoch = epoch_of(word); ended_waits[epoch] = 0 };
#else
    atomic { word = word + ONE_EPOCH + SUSPENDING - EXECUTING; epoch = epoch_of(word) };
#endif
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
       begin_suspension();
       is_timed = true;
       has_ticket = true;
       if
       :: guests_left > 0 -> atomic { guests_left--; others++; run source(epoch, BY_CANCEL, task) }
       :: true -> skip
       fi;
       start_postponer();
       commit()
    :: guests_left > 0 || dooms ->
       /* For ever, until the token or the task is cancelled. */
       begin_suspension();
       is_timed = true;
       if
       :: guests_left > 0 -> atomic { guests_left--; others++; run source(epoch, BY_CANCEL, task) }
       :: dooms -> skip
       fi;
       start_postponer();
       commit()
    :: guests_left > 0 ->
       /* For a completion. */
       begin_suspension();
       atomic { guests_left--; others++; run source(epoch, BY_COMPLETION, task) };
       commit()
    :: /* For its turn. */
       v = word;
       do
       :: n = with_cause(with_phase(v + ONE_EPOCH, SCHEDULED), BY_COMPLETION);
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
    fi
}

inline finish() {
    executes = false;
    atomic { !control_is_locked -> control = 0 };
    v = word;
    do
    :: n = (epoch_of(v) + 1) * ONE_EPOCH + (v & (LINKED | LOCKED));
       atomic {
           if
           :: word == v -> word = n; task = 0; won = true
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
        word = with_cause(with_phase(word, SCHEDULED), BY_COMPLETION);
        is_ready = true
    };
    dooms = false;
    if
    :: atomic { begun == 1 && guests_left > 0 -> dooms = true; guests_left--; others++; run doomer(begun) }
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
       :: v & LOCKED -> make_ready(); break
#endif
       :: else ->
          n = with_phase(v, EXECUTING) & ~MOVED;
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
    :: phase_of(v) != IDLE -> has_ticket = false
    :: phase_of(v) == IDLE ->
       if
#ifndef M_FIRES_LOCKED
       :: v & LOCKED -> skip
       :: !(v & LOCKED) && (v & MOVED) -> n = v & ~MOVED; swap(v, n)
       :: !(v & (LOCKED | MOVED)) ->
#else
       :: v & MOVED -> n = v & ~MOVED; swap(v, n)
       :: !(v & MOVED) ->
#endif
          if
          :: n = with_cause(with_phase(v, EXECUTING), BY_TIMER)
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

active proctype owner() {
    int v, n;
    byte epoch, begun, waits_left;
    bool won, executes, dooms;
    do
    :: executes && waits_left > 0 -> waits_left--; wait()
    :: executes && waits_left == 0 -> finish()
    :: !executes && is_pushed -> obey()
    :: !executes && is_ready -> run_scheduled()
    :: !executes && has_ticket -> fire()
    :: !executes && is_free && begun < TASKS -> spawn()
    :: atomic { is_free && begun == TASKS && others == 0 && !is_pushed -> break }
    od;
    assert(is_free && !is_ready && control == 0)
}
