/* SPDX-License-Identifier: MIT */
/* mutants: M_FULL_IGNORED M_POP_STORES M_COPIES_LATE M_STALE_IGNORED M_HALF_OF_ONE M_NO_CALL M_LOOKS_FIRST */
/* mutants: M_FAILED_CALL_KEEPS M_FAILED_CALL_SILENT M_CALL_UNDONE_BLINDLY M_CALL_NOT_TAKEN M_CALL_TAKEN_LATE */
/* mutants: M_WITHDRAWS_LATE M_PARKED_LATE M_INBOX_UNSEEN M_INJECTED_UNSEEN M_MERGED_UNSEEN M_RINGS_UNSEEN */
/* mutants: M_FINDER_SILENT M_SEEKER_SILENT M_SEARCH_ENDS_LATE M_SEARCHES_ON M_SPAWNS_SILENTLY M_RUNS_SILENTLY */
/* mutants: M_FIRES_SILENTLY M_OVERFLOWS_SILENTLY M_EXCHANGES_SILENTLY M_RETIRES_CALLED M_RETIRES_SILENT */

/* Who wakes whom when there is work for anybody, and how one worker takes from another: ready_ring.hpp, injection.hpp,
 * call_somebody() and has_ready_work() in crew.cpp, worker_ready.cpp, turn(), begin_park() and end_park() in worker.cpp,
 * retire() in worker_retire.cpp.
 *
 * Whoever has made work visible looks whether somebody is parked and nobody searches. Then he counts one searcher more,
 * picks a worker that is parked, marks it as called, and wakes it. It takes the call in its next turn, before any user
 * code, and is the searcher that was counted. If it cannot be woken, because it was awake after all, the call is taken
 * back, unless it has taken the call itself.
 *
 * While somebody searches nobody is called. So whoever ends a search as the last one looks at everything once more and
 * calls the next one: when he has found something; when he has found nothing; and when he is the one who has called and
 * found nobody to wake, as long as there is somebody asleep. Before user code runs, and when it puts something into the
 * ring, somebody is called for what is in the ring. A worker that goes to sleep publishes that, is counted as parked,
 * and looks at everything once more.
 *
 * User code may go on for ever. When all has come to rest, no work that anybody may take is left while a worker sleeps;
 * no task is lost or runs twice; nobody is counted as searching, and as parked those who sleep. A worker that turns
 * again because it saw work finds some, or somebody else did.
 *
 * All that matters here is seq_cst, so every step is seen by all at once; withdraw() too, so that it comes before the
 * look for a call (M_WITHDRAWS_LATE). What is relaxed does not matter when it is seen: counting down those who are
 * parked, counting up those who search, taking a call back, the size of the injection queue when something is taken.
 * How the bell is rung: see park.pml.
 *
 * What does not matter, and has no mutant: whether a worker looks for a call after it has published, because whoever has
 * called wakes whom he finds published or takes the call back; whether what was found is in the ring when the search
 * ends, because somebody is called for it before user code runs; which counter of a ring a thief reads first, because
 * one that was read too long ago is noticed.
 *
 * M_FULL_IGNORED         the owner does not look whether the ring is full
 * M_POP_STORES           the owner moves the head by a store
 * M_COPIES_LATE          a thief copies what he takes after he has moved the head
 * M_STALE_IGNORED        a thief does not notice that his head is too old
 * M_HALF_OF_ONE          half of one is none
 * M_NO_CALL              work that is nobody's wakes nobody
 * M_LOOKS_FIRST          whether somebody is parked is looked at before the work is visible
 * M_FAILED_CALL_KEEPS    who finds nobody to wake does not end the search
 * M_FAILED_CALL_SILENT   who finds nobody to wake does not look again, although others have relied on the search
 * M_CALL_UNDONE_BLINDLY  a call is taken back without a look whether the worker has taken it
 * M_CALL_NOT_TAKEN       a worker that was called becomes one searcher more
 * M_CALL_TAKEN_LATE      the call is taken after the timers were fired
 * M_WITHDRAWS_LATE       a worker looks whether it was called, and only then is awake for the others
 * M_PARKED_LATE          a worker is counted as parked after its last look
 * M_INBOX_UNSEEN         what is meant for this worker alone is not looked at again after publishing
 * M_INJECTED_UNSEEN      whoever looks at everything leaves out the injection queue
 * M_MERGED_UNSEEN        whoever looks at everything leaves out the merge queue
 * M_RINGS_UNSEEN         whoever looks at everything leaves out the rings
 * M_FINDER_SILENT        the last searcher has found something and does not look again
 * M_SEEKER_SILENT        the last searcher has found nothing and does not look again before it has published; then it
 *                        may see something of its own, and do that for ever
 * M_SEARCH_ENDS_LATE     a worker that has found nothing is a searcher until after its last look
 * M_SEARCHES_ON          a worker is a searcher until it has fired its own timers
 * M_SPAWNS_SILENTLY      what user code puts into the ring wakes nobody
 * M_RUNS_SILENTLY        a task is run although there is more in the ring, and nobody is called
 * M_FIRES_SILENTLY       a timer is fired although there is something in the ring, and nobody is called
 * M_OVERFLOWS_SILENTLY   what does not fit into the ring wakes nobody
 * M_EXCHANGES_SILENTLY   what gives way to others in a full ring wakes nobody
 * M_RETIRES_CALLED       a worker that was called retires without having ended the search
 * M_RETIRES_SILENT       a worker that retires wakes nobody for what it leaves behind
 */

#define WORKERS 3
#define RING 2
#define AWAKE 0

/* What is meant for one worker alone. */
#define A_TASK 1            /* A task was woken: a command in the inbox. */
#define ANOTHER_TASK 2
#define RETIREMENT 4        /* It is told to leave. */

/* The timer of a worker. */
#define PENDING 1           /* It may be due at any time. */
#define DUE 2

#define bit(k) (1 << (k))

#ifdef M_HALF_OF_ONE
#define half_of(there) ((there) / 2)
#else
#define half_of(there) ((there) - (there) / 2)
#endif

byte workers = 2;           /* In this scenario. */

byte ready[WORKERS];        /* How many tasks are in each ring. */
byte injected = 0;
byte merged = 0;
byte inbox[WORKERS];

byte parked = 0;
byte searching = 0;
byte published[WORKERS];    /* Until when it sleeps. */
bool is_called[WORKERS];

/* What there is in this scenario. */
bool is_merging = false;    /* The merge queue is used. */
bool has_deadlines = false; /* What a worker publishes is not always the same. */
bool is_watched = false;    /* Those who turn again are watched. */
byte children = 0;          /* How many tasks the first task spawns. */
byte stuck_left = 0;        /* How many pieces of user code may go on for ever. */

/* What an observer knows. */
byte made = 0;
byte runs = 0;
byte asleep = 0;
byte stuck = 0;
byte fruitless = 0;         /* Who has turned again because it saw work, since anything has happened. */

/* --- A ring, step by step: ready_ring.hpp. In all that follows, what is done to a ring is one step. */

#define TASKS 4

byte head = 0;
byte tail = 0;
byte entries[RING];
byte has_run = 0;

#define entry(position) entries[(position) % RING]

inline run_once(task) {
    d_step {
        assert(!(has_run & bit(task)));
        has_run = has_run | bit(task);
        runs++
    }
}

/* The owner: push() while there is room, and pop() when there is none and at the end. Nobody else writes the tail and
 * the entries. */
proctype ring_owner() {
    byte h;
    bool is_full;
    do
    :: made == TASKS && head == tail -> break
    :: else ->
#ifndef M_FULL_IGNORED
       is_full = tail - head == RING;  /* [steal: ring is full] */
#endif
       if
       :: made < TASKS && !is_full ->
          atomic { entry(tail) = made; made++ };
          tail++  /* [steal: push] */
       :: else ->
          h = head;
          do
          :: h == tail -> break
          :: else ->
#ifdef M_POP_STORES
             atomic { run_once(entry(h)); head = h + 1 };
             break
#else
             if
             :: atomic { head == h -> run_once(entry(h)); head = h + 1; break }  /* [steal: pop] */
             :: atomic { head != h -> h = head }
             fi
#endif
          od
       fi
    od
}

/* take_half(), which is one here. */
proctype ring_thief() {
    byte h, there, got, thefts = 2;
    do
    :: thefts == 0 -> break
    :: else ->
       thefts--;
       h = head;
       do
       :: there = tail - h;
          if
          :: there == 0 -> break
#ifdef M_STALE_IGNORED
          :: else ->
#else
          :: there > RING -> h = head  /* [steal: stale head] */
          :: there > 0 && there <= RING ->
#endif
             assert(there <= RING);      /* A thief has no room for more. */
#ifndef M_COPIES_LATE
             got = entry(h);  /* [steal: copy] */
#endif
             if
             :: atomic { head == h -> head = h + half_of(there) };  /* [steal: take half] */
#ifdef M_COPIES_LATE
                got = entry(h);
#endif
                run_once(got);
                break
             :: atomic { head != h -> h = head }
             fi
          fi
       od
    od
}

/* --- What any thread does: crew.cpp. */

inline drop_searching() {
    assert(searching > 0);
    searching--;
    is_last = searching == 0
}

/* has_ready_work(): the answer is is_found. */
inline look_for_work() {  /* [steal: look for work] */
    r = 0;
#ifndef M_INJECTED_UNSEEN
    is_found = injected > 0;
#endif
#ifndef M_MERGED_UNSEEN
    if
    :: atomic { is_merging && !is_found -> is_found = merged > 0 }
    :: atomic { else -> skip }
    fi;
#endif
#ifndef M_RINGS_UNSEEN
    do
    :: atomic { r < workers && !is_found -> is_found = ready[r] > 0; r++ }
    :: atomic { else -> r = 0; break }
    od
#endif
}

/* is_parked(), of all: the answer is is_found. */
inline look_for_sleepers() {  /* [steal: look for sleepers] */
    is_found = false;
    do
    :: atomic { r < workers && !is_found -> is_found = published[r] != AWAKE; r++ }
    :: atomic { else -> r = 0; break }
    od
}

/* wake_up(), which is parking::wake_before(): the answer is is_won. */
inline wake_up(whom) {
    if
    :: has_deadlines -> seen = published[whom]
    :: atomic { else -> skip }
    fi;
    atomic {
        is_won = published[whom] != AWAKE && (!has_deadlines || published[whom] == seen);
        seen = 0;
        if
        :: is_won -> published[whom] = AWAKE
        :: else -> skip
        fi
    }
}

/* call_somebody(). */
inline call_somebody() {
    do
    :: atomic { parked == 0 -> break }  /* [steal: look for parked] */
    :: parked > 0 ->
       atomic {
           if
           :: searching == 0 -> searching = 1  /* [steal: count caller] */
           :: else -> break
           fi
       };
       do
       :: atomic { w == workers -> break }
       :: atomic { w < workers && published[w] == AWAKE -> w++ }
       :: w < workers && published[w] != AWAKE ->
          atomic { is_won = !is_called[w]; is_called[w] = true };  /* [steal: call] */
          if
          :: is_won ->
             wake_up(w);
             if
             :: atomic { is_won -> is_won = false; break }
             :: atomic {
                    else ->
                    /* It was awake after all. If it has taken the call meanwhile, it looks. */
#ifdef M_CALL_UNDONE_BLINDLY
                    is_won = true;
#else
                    is_won = is_called[w];  /* [steal: take call back] */
#endif
                    is_called[w] = false;
                    if
                    :: is_won -> is_won = false; w++
                    :: else -> break
                    fi
                }
             fi
          :: else -> w++      /* Nobody else calls meanwhile, so this does not happen. */
          fi
       od;
       if
       :: atomic { w < workers -> w = 0; break }
       :: atomic {
              else ->
              w = 0;
#ifdef M_FAILED_CALL_KEEPS
              break
          }
#else
              drop_searching();  /* [steal: end call] */
#ifdef M_FAILED_CALL_SILENT
              is_last = false;
#endif
              if
              :: is_last -> is_last = false
              :: else -> break
              fi
          };
          look_for_work();
          if
          :: is_found -> look_for_sleepers()
          :: else -> skip
          fi;
          if
          :: is_found -> is_found = false
          :: else -> break
          fi
#endif
       fi
    od
}

/* A thread outside: spawn(), wake() and inject(); or send_to_all(). */
proctype sender_to_all(byte burst; bool is_merged) {
    byte w, r, seen;
    bool is_won, is_last, is_found;
    do
    :: burst == 0 -> break
    :: else ->
#ifdef M_LOOKS_FIRST
       is_found = parked > 0;
#endif
       atomic {
           injected = (is_merged -> injected : injected + 1);  /* [steal: inject] */
           merged = (is_merged -> merged + 1 : merged);
           made++;
           burst--;
           fruitless = 0
       };
#ifdef M_LOOKS_FIRST
       if
       :: is_found -> is_found = false; call_somebody()
       :: else -> skip
       fi
#elif !defined(M_NO_CALL)
       call_somebody()
#endif
    od
}

/* A thread outside: send(), for one worker alone, or tell_to_leave(). */
proctype sender(byte to; byte what) {
    byte seen;
    bool is_won;
    atomic { inbox[to] = what; fruitless = 0 };
    wake_up(to)
}

/* --- A worker: worker.cpp, worker_ready.cpp. */

/* Where it goes on when it has called somebody. */
mtype = { to_obey, to_search, to_fire, to_user_code, to_offer, to_spawn, to_last_call, to_end };

inline call_and_go_on(where) { back = where; goto call }

/* offer_work(). */
inline offer_work(where) {
    if
    :: ready[me] > 0 -> call_and_go_on(where)  /* [steal: offer] */
    :: atomic { else -> skip }
    fi
}

/* end_search(). */
inline end_search(where) {
    if
    :: atomic { is_searching -> is_searching = false; drop_searching() };  /* [steal: end search] */
#ifdef M_FINDER_SILENT
       is_last = is_last && ready[me] == 0;
#endif
#ifdef M_SEEKER_SILENT
       is_last = is_last && ready[me] > 0;
#endif
       if
       :: is_last ->
          is_last = false;
          look_for_work();
          if
          :: is_found -> is_found = false; call_and_go_on(where)
          :: else -> skip
          fi
       :: else -> skip
       fi
    :: else -> skip
    fi
}

/* How find_work() begins; and a step of retire(). */
inline take_call() {
    atomic {
#ifndef M_CALL_NOT_TAKEN
        is_searching = is_called[me];  /* [steal: take call] */
#endif
        is_called[me] = false
    }
}

/* end_park(). */
inline end_park() {
    published[me] = AWAKE;  /* [steal: withdraw] */
    atomic { assert(parked > 0); parked-- }  /* [steal: leave the parked] */
}

proctype worker(byte me; bool is_parked; byte timer) {
    byte taken, v, w, r, seen;
    bool is_searching, is_won, is_last, is_found, has_task;
    bit parity;
    mtype back;
#ifdef M_WITHDRAWS_LATE
    bool withdraws;
#endif

    if
    :: is_parked -> is_parked = false; goto end_asleep
    :: else -> skip
    fi;

turn:
    assert(!is_searching);

obey:
    /* obey(): what was woken goes by make_ready() to push_ready(), and from a ring that is full by inject() to all. */
    do
    :: atomic { inbox[me] & RETIREMENT -> goto retire }
    :: atomic { is_merging && merged > 0 && !(inbox[me] & RETIREMENT) -> taken = merged; merged = 0 }
    :: atomic {
           inbox[me] & (A_TASK | ANOTHER_TASK) ->
           inbox[me] = (inbox[me] & ANOTHER_TASK -> inbox[me] - ANOTHER_TASK : inbox[me] - A_TASK);
           made++;
           taken++
       }
    :: atomic { taken > 0 && ready[me] < RING -> taken--; ready[me]++; fruitless = 0 }
    :: taken > 0 && ready[me] == RING ->
       atomic { taken--; injected++; fruitless = 0 };  /* [steal: overflow] */
#ifndef M_OVERFLOWS_SILENTLY
       call_and_go_on(to_obey)
#endif
    :: atomic { else -> break }
    od;

    /* find_work(). */
#ifndef M_CALL_TAKEN_LATE
    take_call();
#endif
#ifdef M_WITHDRAWS_LATE
    if
    :: withdraws -> withdraws = false; end_park()
    :: else -> skip
    fi;
#endif

    /* take_injected(): as many as there is room for; if there is none, one changes places with one from the ring. */
    atomic {
        is_won = ready[me] == RING;  /* [steal: take injected] */
        taken = (is_won -> 1 : RING - ready[me]);
        taken = (taken < injected -> taken : injected);
        injected = injected - taken;
        fruitless = (taken > 0 -> 0 : fruitless);
        is_won = is_won && taken > 0
    };
    if
    :: is_won ->
       is_won = false;
       if
       :: atomic { ready[me] > 0 -> ready[me]-- };
          atomic { injected++; fruitless = 0 };  /* [steal: exchange] */
#ifndef M_EXCHANGES_SILENTLY
          call_and_go_on(to_search)
#endif
       :: atomic { ready[me] == 0 -> skip }
       fi
    :: else -> skip
    fi;

search:
    /* take_half(), from one after the other. Only the owner fills its ring, so it stays empty. */
    if
    :: atomic {
           taken == 0 && ready[me] == 0 ->
           searching = (is_searching -> searching : searching + 1);  /* [steal: search] */
           is_searching = true
       };
       do
       :: atomic { v == workers || taken > 0 -> v = 0; break }
       :: atomic { v < workers && taken == 0 && v == me -> v++ }
       :: atomic {
              v < workers && taken == 0 && v != me ->
              taken = half_of(ready[v]);  /* [steal: steal] */
              ready[v] = ready[v] - taken;
              fruitless = (taken > 0 -> 0 : fruitless);
              v++
          }
       od
    :: atomic { else -> skip }
    fi;
    do
    :: atomic { taken > 0 -> assert(ready[me] < RING); taken--; ready[me]++; fruitless = 0 }
    :: taken == 0 -> break
    od;
#ifdef M_SEARCH_ENDS_LATE
    if
    :: ready[me] > 0 || timer != 0 -> end_search(to_fire)
    :: else -> skip
    fi;
#elif !defined(M_SEARCHES_ON)
    end_search(to_fire);
#endif

fire:
    /* fire_due(), run_callback(). */
    if
    :: timer != 0 ->
       timer = 0;
       fruitless = 0;
#ifndef M_FIRES_SILENTLY
       offer_work(to_user_code);
#endif
       goto user_code
    :: timer != DUE
    fi;
#ifdef M_CALL_TAKEN_LATE
    take_call();
#endif
#if defined(M_SEARCHES_ON) || defined(M_CALL_TAKEN_LATE)
    end_search(to_fire);
#endif

run_ready:
    /* run_ready(), resume(). */
    if
    :: atomic { ready[me] > 0 -> ready[me]--; has_task = true; fruitless = 0 };
#ifndef M_RUNS_SILENTLY
       offer_work(to_user_code);
#endif
       goto user_code
    :: atomic { ready[me] == 0 -> skip }
    fi;

    /* begin_park(). */
    atomic { published[me] = 1 + parity; parity = (has_deadlines -> 1 - parity : 0) };  /* [steal: publish] */
#ifndef M_PARKED_LATE
    parked++;  /* [steal: count parked] */
#endif
#ifndef M_INBOX_UNSEEN
    is_won = inbox[me] != 0;  /* [steal: look again] */
#endif
    if
    :: !is_won ->
       look_for_work();
       if
       :: atomic {
              is_found ->
              is_found = false;
              is_won = true;
              assert(!(fruitless & bit(me)));
              fruitless = fruitless | (is_watched -> bit(me) : 0)
          }
       :: else -> skip
       fi
    :: else -> skip
    fi;
#ifdef M_SEARCH_ENDS_LATE
    if
    :: atomic { is_searching -> is_searching = false; drop_searching(); is_last = false }
    :: else -> skip
    fi;
#endif
#ifdef M_PARKED_LATE
    parked++;
#endif
    if
    :: is_won -> is_won = false
    :: atomic { else -> asleep = asleep | bit(me) };
end_asleep:
       /* parking::sleep(), until somebody wakes it or its timer is due. */
       if
       :: atomic { published[me] == AWAKE -> asleep = asleep & ~bit(me) }
       :: atomic { timer != 0 -> timer = DUE; asleep = asleep & ~bit(me) }
       fi
    fi;
#ifdef M_WITHDRAWS_LATE
    withdraws = true;
#else
    end_park();
#endif
    goto turn;

user_code:
    if
    :: atomic {
           has_task ->
           has_task = false;
           assert(runs < made);
           taken = (runs == 0 -> children : 0);
           runs++
       }
    :: else -> skip
    fi;

spawn:
    /* spawn() and wake(), on a worker: push_ready(), offer_work(). */
    if
    :: atomic { taken > 0 && ready[me] < RING -> taken--; made++; ready[me]++; fruitless = 0 }
    :: taken > 0 && ready[me] == RING ->
       atomic { taken--; made++; injected++; fruitless = 0 };
#ifndef M_OVERFLOWS_SILENTLY
       call_and_go_on(to_offer)
#endif
    :: taken == 0 -> goto spawned
    fi;

offer:
#ifndef M_SPAWNS_SILENTLY
    offer_work(to_spawn);
#endif
    goto spawn;

spawned:
    if
    :: atomic { stuck_left > 0 -> stuck_left--; stuck = stuck | bit(me) };
end_stuck:
       false
    :: skip
    fi;
#ifdef M_SEARCHES_ON
    end_search(to_fire);
#endif
    goto run_ready;

retire:
    /* retire(): the ring goes to the injection queue, and the search to whoever comes next. */
#ifdef M_WITHDRAWS_LATE
    if
    :: withdraws -> end_park()
    :: else -> skip
    fi;
#endif
    do
    :: atomic { ready[me] > 0 -> ready[me]-- };  /* [steal: empty ring] */
       atomic { injected++; fruitless = 0 }
    :: atomic { ready[me] == 0 -> break }
    od;
#ifndef M_RETIRES_CALLED
    take_call();  /* [steal: pass call on] */
    end_search(to_last_call);
#endif

last_call:
#ifndef M_RETIRES_SILENT
    call_and_go_on(to_end);
#endif

end:
    atomic { inbox[me] = 0; stuck = stuck | bit(me) };
    goto gone;

call:
    call_somebody();
    if
    :: atomic { back == to_obey -> back = 0; goto obey }
    :: atomic { back == to_search -> back = 0; goto search }
    :: atomic { back == to_fire -> back = 0; goto fire }
    :: atomic { back == to_user_code -> back = 0; goto user_code }
    :: atomic { back == to_offer -> back = 0; goto offer }
    :: atomic { back == to_spawn -> back = 0; goto spawn }
    :: atomic { back == to_last_call -> back = 0; goto last_call }
    :: atomic { back == to_end -> back = 0; goto end }
    fi;

gone:
    skip
}

/* --- What must be true at rest. */

active proctype observer() {
    byte k, visible;
end:
    timeout ->
    d_step {
        visible = injected + merged;
        k = 0;
        do
        :: k < workers ->
           visible = visible + ready[k];
           assert(!is_called[k]);
           assert(((asleep & bit(k)) != 0) == (published[k] != AWAKE));
           assert(!((asleep & bit(k)) && inbox[k] != 0));
           k++
        :: else -> break
        od;
        assert(searching == 0);
        assert(parked == (asleep & 1) + ((asleep >> 1) & 1) + ((asleep >> 2) & 1));
        assert((asleep | stuck) == bit(workers) - 1);      /* Nobody is anywhere else. */
        assert(visible == 0 || asleep == 0);
        assert(visible + runs == made)
    }
}

init {
    atomic {
        byte k, sleepers, timers;
        if
        :: /* A ring by itself: it is full, and its places are used again. */
           workers = 0;
           run ring_owner();
           run ring_thief()
        :: /* A worker with something in its ring leaves. */
           sleepers = 2;
           made = 1;
           ready[0] = 1;
           run sender(0, RETIREMENT)
        :: /* Two tasks of a worker are woken; one goes on for ever. */
           sleepers = 3;
           stuck_left = 1;
           run sender(0, A_TASK + ANOTHER_TASK)
        :: /* A task of a worker is woken; a timer of it goes on for ever. */
           sleepers = 3;
           timers = 1;
           stuck_left = 1;
           run sender(0, A_TASK)
        :: /* The only worker is woken by its timer while two threads send something. */
           workers = 1;
           sleepers = 1;
           timers = 1;
           run sender_to_all(1, false);
           if
           :: run sender_to_all(1, false)
           :: is_merging = true; run sender_to_all(1, true)
           :: has_deadlines = true; run sender_to_all(1, false)
           fi
        :: /* A task spawns more than the ring holds, and goes on for ever. */
           sleepers = 2;
           stuck_left = 1;
           is_watched = true;
           made = 1;
           ready[0] = 1;
           children = 3
        :: /* A ring is full, and a task of its owner is woken. */
           sleepers = 2;
           stuck_left = 1;
           made = 2;
           ready[0] = 2;
           run sender(0, A_TASK)
        :: /* A ring is full, and there is something that is nobody's; two tasks go on for ever. */
           stuck_left = 2;
           made = 3;
           ready[0] = 2;
           injected = 1
        :: /* A worker that may be called leaves. */
           sleepers = 3;
           run sender_to_all(1, false);
           run sender(0, RETIREMENT)
        :: /* A task spawns another and goes on for ever; so may the timer of whoever could help. */
           sleepers = 3;
           timers = 2;
           stuck_left = 2;
           children = 1;
           run sender_to_all(1, false)
        :: /* Two tasks come from one thread; one goes on for ever. */
           sleepers = 3;
           stuck_left = 1;
           run sender_to_all(2, false)
        :: /* Two tasks of a worker are woken; one goes on for ever, and two others can help. */
           workers = 3;
           sleepers = 7;
           stuck_left = 1;
           run sender(0, A_TASK + ANOTHER_TASK)
        :: /* A worker that is woken by its timer publishes something else the next time. */
           sleepers = 3;
           timers = 2;
           has_deadlines = true;
           stuck_left = 1;
           run sender_to_all(1, false)
        :: /* Two tasks come from two threads; one goes on for ever. */
           sleepers = 3;
           stuck_left = 1;
           run sender_to_all(1, false);
           run sender_to_all(1, false)
        fi;
        k = 0;
        do
        :: k < workers ->
           if
           :: sleepers & bit(k) -> published[k] = 1; parked++; asleep = asleep | bit(k)
           :: else -> skip
           fi;
           run worker(k, (sleepers & bit(k)) != 0, ((timers >> k) & 1 -> PENDING : 0));
           k++
        :: else -> break
        od;
        k = 0;
        timers = 0;
        sleepers = 0
    }
}
