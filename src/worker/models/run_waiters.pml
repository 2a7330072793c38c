/* SPDX-License-Identifier: MIT */
/* mutants: M_COUNT_READ_LATE M_WAITED_UNSET M_END_STORES M_NOTIFIES_FIRST M_COUNT_KEPT M_WAKES_ONE M_SUBSCRIBES_LATE */

/* Waiting for the end of a callback's run: cancel_and_wait(), cancel_and_subscribe() and notify_waiters() in
 * crew_cancel.cpp, end_run() in worker_timers.cpp.
 *
 * Two threads block until the run is over, and a task subscribes to its end; meanwhile a run of another timer, that
 * nobody waits for here, ends too and rings the same counter. Nobody goes on before the run is over, and nobody is left
 * waiting.
 *
 * M_COUNT_READ_LATE  the counter is read after the word was marked
 * M_WAITED_UNSET     a waiter does not mark the word
 * M_END_STORES       the end of the run looks at the word and then stores
 * M_NOTIFIES_FIRST   the waiters are told before the word says that the run is over
 * M_COUNT_KEPT       the waiters are woken, but the counter does not change
 * M_WAKES_ONE        only one of them is woken
 * M_SUBSCRIBES_LATE  the word is marked before the subscriber is in the list
 */

#define RUNNING 1
#define LAST_RUN 2
#define WAITED 4
#define OVER 0

byte word = RUNNING;
byte ended_runs = 0;
bool is_asleep[2];
bool is_through[2];
bool is_subscribed = false;    /* The task is in the list of those who are told. */
bool is_complete = false;
bool list_is_locked = false;

inline swap(v, n) {
    atomic {
        if
        :: word == v -> word = n; won = true
        :: else -> v = word; won = false
        fi
    }
}

inline mark(flag) {
    do
    :: (v & RUNNING) == 0 -> won = false; break
    :: else ->
       swap(v, v | flag);
       if
       :: won -> break
       :: else -> skip
       fi
    od
}

inline lock_list() { atomic { !list_is_locked -> list_is_locked = true } }

proctype waiter(byte me) {
    byte v, seen;
    bool won;
    v = word;
    mark(LAST_RUN);
    do
    :: !won -> break
    :: else ->
#ifndef M_COUNT_READ_LATE
       seen = ended_runs;  /* [run_waiters: read count] */
#endif
       v = word;
       if
       :: (v & RUNNING) == 0 -> break
       :: else ->
#ifndef M_WAITED_UNSET
          swap(v, v | WAITED);  /* [run_waiters: mark] */
#endif
          if
          :: won ->
#ifdef M_COUNT_READ_LATE
             seen = ended_runs;
#endif
             atomic { is_asleep[me] = (ended_runs == seen) };  /* [run_waiters: sleep] */
             (!is_asleep[me])
          :: else -> won = true        /* Somebody was faster; look again. */
          fi
       fi
    od;
    assert(word == OVER);
    is_through[me] = true
}

proctype subscriber() {
    byte v;
    bool won;
    v = word;
    mark(LAST_RUN);
    if
    :: won ->
#ifndef M_SUBSCRIBES_LATE
       lock_list();
       is_subscribed = true;  /* [run_waiters: subscribe] */
       list_is_locked = false;
#endif
       v = word;
       mark(WAITED);  /* [run_waiters: mark for a task] */
#ifdef M_SUBSCRIBES_LATE
       lock_list();
       is_subscribed = true;
       list_is_locked = false;
#endif
       if
       :: won -> (is_complete)
       :: else -> skip
       fi
    :: else -> skip
    fi;
    assert(word == OVER)
}

inline wake_all() {
#ifndef M_COUNT_KEPT
    ended_runs++;  /* [run_waiters: count] */
#endif
#ifdef M_WAKES_ONE
    atomic {
        if
        :: is_asleep[0] -> is_asleep[0] = false
        :: else -> is_asleep[1] = false
        fi
    }
#else
    atomic { is_asleep[0] = false; is_asleep[1] = false }  /* [run_waiters: wake all] */
#endif
}

inline notify_waiters() {
    lock_list();
    if
    :: is_subscribed -> is_complete = true  /* [run_waiters: complete] */
    :: else -> skip
    fi;
    list_is_locked = false;
    wake_all()
}

proctype owner() {
    byte v;
    bool won;
    /* The end of another run. */
    if
    :: wake_all()
    :: skip
    fi;
    v = word;
#ifdef M_NOTIFIES_FIRST
    if
    :: v & WAITED -> notify_waiters()
    :: else -> skip
    fi;
#endif
#ifdef M_END_STORES
    word = OVER;
#else
    do
    :: swap(v, OVER);  /* [run_waiters: end run] */
       if
       :: won -> break
       :: else -> skip
       fi
    od;
#endif
#ifndef M_NOTIFIES_FIRST
    if
    :: v & WAITED -> notify_waiters()
    :: else -> skip
    fi
#endif
}

init {
    atomic {
        run owner();
        run waiter(0);
        run waiter(1);
        run subscriber()
    }
}
