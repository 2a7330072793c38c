/* SPDX-License-Identifier: MIT */
/* mutants: M_STORE_UNLOCKED M_NO_MOVED M_FIRES_LOCKED M_PUSHES_LINKED M_DRAIN_FREES_LOCKED M_RUN_FREES_LINKED */
/* mutants: M_CANCELLER_FREES M_SAME_LIFE M_UNLOCK_SILENT M_LAST_RUN_IGNORED M_LOOKS_THEN_STORES */
/* mutants: M_SHORT_OF_LINKED M_SHORT_OF_LOCKED */
/* mutants: M_ACCEPT_WRITES_BACK M_STAMP_UNANNOUNCED M_STAMP_LOOKS_FIRST M_POSTPONE_KEEPS_MOVED M_DRAIN_WANTS_MOVED */

/* The word of a callback's record, its deadline and its ticket: state_word.hpp; cancelling in crew_cancel.cpp; postponing
 * in crew_postpone.cpp and, for the owner and its stamps, worker_postpone.cpp; arming and the end of a run in
 * crew_timers.cpp and worker_timers.cpp; fire_one() in worker.cpp and obey_one() in worker_commands.cpp. One record, used
 * again for a second timer; its owner; and others who cancel and postpone it.
 *
 * Time may pass at any step. Nothing fires before the deadline in force, which is the one that was asked for last; at
 * rest the ticket is not later than that; a closure ends once; a record is not used again while it is linked or locked,
 * and at the end it is free.
 *
 * Who writes the deadline of an armed record: others under `locked`, by an exchange, so that they learn what they have
 * replaced; the owner at any time, because only the owner gives the record back. Except that a delay is stamped when the
 * user's code returns, some time after it was asked for: whoever has postponed the timer in between keeps the last word.
 * So a stamp announces itself and then looks for a lock or a mark; the others lock and then look for a stamp.
 *
 * M_STORE_UNLOCKED         the deadline is stored without a lock
 * M_NO_MOVED               the owner is not told that the deadline has changed
 * M_FIRES_LOCKED           a locked record is fired
 * M_PUSHES_LINKED          a canceller pushes a record that is in the inbox
 * M_DRAIN_FREES_LOCKED     the drain gives back a record that is locked
 * M_RUN_FREES_LINKED       the end of a run gives back a record that is in the inbox
 * M_CANCELLER_FREES        a canceller elsewhere gives the record back itself
 * M_SAME_LIFE              a record that was cancelled or has run goes on in the same life
 * M_UNLOCK_SILENT          whoever unlocks last does not give back what was cancelled meanwhile
 * M_LAST_RUN_IGNORED       a periodic timer goes on although it was cancelled during its run
 * M_LOOKS_THEN_STORES      a postponer compares with a deadline that it reads before it stores its own
 * M_ACCEPT_WRITES_BACK     the drain stores the deadline that it has read
 * M_STAMP_UNANNOUNCED      others do not know that deadlines are being stamped
 * M_STAMP_LOOKS_FIRST      a stamp looks at the word before it announces itself
 * M_POSTPONE_KEEPS_MOVED   the owner's postponement leaves the mark of an older one by others, and the stamp gives way
 * M_SHORT_OF_LINKED        a canceller elsewhere takes the short way with a record that is in the inbox
 * M_SHORT_OF_LOCKED        a canceller elsewhere takes the short way with a record that is locked
 * M_DRAIN_WANTS_MOVED      the drain does not look at the deadline of a record that is not marked any more
 */

#define LAST_TICK 4
#define NOWHERE 14
#define FAR_AWAY 13

#define VACANT 0
#define ARMED 1
#define RUNNING 2
#define ENDING 3
#define STATE 3
#define LINKED 4
#define LOCKED 8
#define MOVED 16
#define LAST_RUN 32
#define ONE_LIFE 64

#define state_of(value) ((value) & STATE)
#define life_of(value) ((value) / ONE_LIFE)
#define with_state(value, state) (((value) & ~STATE) | (state))

#ifdef M_SAME_LIFE
#define NEXT_LIFE 0
#else
#define NEXT_LIFE ONE_LIFE
#endif

short word = VACANT;
byte deadline = 0;
byte ticket = NOWHERE;       /* What the one valid ticket was placed for. */
bool is_numbered = false;    /* The owner has accepted it. */
bool is_pushed = false;      /* Its link is in use by the inbox. */
bool is_free = true;
bool is_stamping = false;
byte now = 0;
byte others = 0;             /* How many other threads are not through. */

/* What an observer knows. */
byte in_force = 0;
bool has_closure = false;
bool was_last_run = false;
byte begun = 0;              /* How many timers there have been. */

byte lives = 2;
bool is_periodic = false;
byte first_here = 0;          /* The owner arms this one and those after it. */

/* v: what the word was, n: what it becomes. On failure v is what it is. */
inline swap(v, n) {
    atomic {
        if
        :: word == v -> word = n; won = true
        :: else -> v = word; won = false
        fi
    }
}

inline push() { atomic { assert(!is_pushed); is_pushed = true } }

inline give_back() {
    atomic {
        assert(!is_free && !is_pushed && !has_closure);
        assert((word & (STATE | LINKED | LOCKED)) == 0);
        ticket = NOWHERE;
        is_numbered = false;
        is_free = true
    }
}

inline end_closure() { atomic { assert(has_closure); has_closure = false } }

inline take_record(when) {
    atomic {
        is_free = false;
        assert((word & (STATE | LINKED | LOCKED)) == 0 && !is_pushed && !has_closure);
        has_closure = true;
        was_last_run = false;
        in_force = when;
        begun++
    }
}

/* --- Any thread. */

/* end_cancelled(): the closure ends, and the record goes back, by whoever lets go of it last. */
inline end_cancelled(is_here) {
    end_closure();
    v = word;
    do
    :: is_held = (v & (LINKED | LOCKED)) != 0;
#ifdef M_PUSHES_LINKED
       is_held = (v & LOCKED) != 0;
#endif
#ifdef M_CANCELLER_FREES
       n = with_state(v, VACANT);
#else
       n = with_state(v, VACANT) | (is_held || is_here -> 0 : LINKED);
#endif
       swap(v, n);
       if
       :: won -> break
       :: else -> skip
       fi
    od;
    if
    :: is_held && !is_here ->
#ifdef M_CANCELLER_FREES
       give_back()
#else
       skip
#endif
    :: !is_held && is_here -> give_back()
    :: !is_held && !is_here ->
#ifdef M_CANCELLER_FREES
       give_back()
#else
       push()
#endif
    :: else -> skip
    fi;
    is_held = false
}

#define NO_FLAGS (ONE_LIFE - 1)
#ifdef M_SHORT_OF_LINKED
#define SHORT_OF (NO_FLAGS & ~LINKED)
#else
#ifdef M_SHORT_OF_LOCKED
#define SHORT_OF (NO_FLAGS & ~LOCKED)
#else
#define SHORT_OF NO_FLAGS
#endif
#endif

inline cancel(life, is_here) {
    v = word;
    do
    :: life_of(v) != life -> break
    :: life_of(v) == life && (v & SHORT_OF) == ARMED ->
       /* The first steps of cancel(), or try_cancel_elsewhere(): nobody is at it, and there is nothing to destroy. */
       n = ((v & ~NO_FLAGS) | (is_here -> 0 : LINKED)) + NEXT_LIFE;
       atomic {
           if
           :: word == v -> word = n; assert(begun == life + 1); end_closure(); won = true
           :: else -> v = word; won = false
           fi
       };
       if
       :: won && is_here -> give_back(); break
       :: won && !is_here -> deadline = FAR_AWAY; push(); break   /* Where the next one lies. */
       :: else -> skip
       fi
    :: life_of(v) == life && state_of(v) == ARMED ->
       n = (with_state(v, ENDING) & ~MOVED) + NEXT_LIFE;
       atomic {
           if
           :: word == v -> word = n; assert(begun == life + 1); won = true
           :: else -> v = word; won = false
           fi
       };
       if
       :: won -> end_cancelled(is_here); break
       :: else -> skip
       fi
    :: life_of(v) == life && state_of(v) == RUNNING ->
       n = v | LAST_RUN;
       atomic {
           if
           :: word == v -> word = n; was_last_run = true; won = true
           :: else -> v = word; won = false
           fi
       };
       if
       :: won -> break
       :: else -> skip
       fi
    :: else -> break
    od
}

/* --- Other threads. */

proctype armer(byte when) {
    atomic { is_free -> take_record(when) };
    deadline = when;
    word = with_state(word, ARMED) | LINKED;
    push();
    others--
}

proctype canceller(byte life) {
    short v, n;
    bool won, is_held;
    (begun > life);
    cancel(life, false);
    others--
}

#define is_pending(value) (life_of(value) == life && state_of(value) == ARMED)

proctype postponer(byte life; byte target) {
    short v, n;
    byte before;
    bool won, pushes;
    (begun > life);
    v = word;
#ifdef M_STORE_UNLOCKED
    if
    :: is_pending(v) ->
       before = deadline;
       deadline = target;
       do
       :: !is_pending(v) -> break
       :: else ->
          pushes = target < before && !(v & LINKED);
          n = v | MOVED | (pushes -> LINKED : 0);
          atomic {
              if
              :: word == v -> word = n; in_force = target; won = true
              :: else -> v = word; won = false
              fi
          };
          if
          :: won && pushes -> push(); break
          :: won && !pushes -> break
          :: else -> skip
          fi
       od
    :: else -> skip
    fi;
#else
    do
    :: !is_pending(v) -> goto done
    :: is_pending(v) && (v & LOCKED) -> (!(word & LOCKED)); v = word
    :: is_pending(v) && !(v & LOCKED) ->
       n = v | LOCKED;
       swap(v, n);
       if
       :: won -> break
       :: else -> skip
       fi
    od;
    (!is_stamping);
#ifdef M_LOOKS_THEN_STORES
    before = deadline;
#endif
    atomic {
        assert(word & LOCKED);
#ifndef M_LOOKS_THEN_STORES
        before = deadline;
#endif
        deadline = target;
        if
        :: is_pending(word) -> assert(begun == life + 1); in_force = target
        :: else -> skip
        fi
    };
    v = word;
    do
    :: pushes = ((is_pending(v) && target < before) || state_of(v) == VACANT) && !(v & LINKED);
#ifdef M_UNLOCK_SILENT
       pushes = pushes && is_pending(v);
#endif
       n = v & ~LOCKED;
#ifndef M_NO_MOVED
       n = n | (is_pending(v) -> MOVED : 0);
#endif
       n = n | (pushes -> LINKED : 0);
       atomic {
           if
           :: word == v ->
              word = n;
              won = true;
              /* What the owner has asked for meanwhile and not written yet gives way to this. */
              if
              :: is_pending(v) && deadline == target -> in_force = target
              :: else -> skip
              fi
           :: else -> v = word; won = false
           fi
       };
       if
       :: won && pushes -> push(); break
       :: won && !pushes -> break
       :: else -> skip
       fi
    od;
done:
#endif
    others--
}

/* --- The owner. */

/* The ticket stays where it is if it is met in time, and finds out then. */
inline move_ticket(when) {
    if
    :: when < ticket -> ticket = when
    :: else -> skip
    fi
}

inline obey() {
    is_pushed = false;
    atomic { word = word & ~LINKED; v = word };
    if
#ifdef M_DRAIN_WANTS_MOVED
    :: state_of(v) == ARMED && is_numbered && !(v & MOVED) -> skip
    :: state_of(v) == ARMED && (!is_numbered || (v & MOVED)) ->
#else
    :: state_of(v) == ARMED ->
#endif
       word = word & ~MOVED;
       d = deadline;
       if
       :: !is_numbered -> is_numbered = true; ticket = d
       :: is_numbered && ticket != NOWHERE -> move_ticket(d)
       :: else -> skip
       fi;
#ifdef M_ACCEPT_WRITES_BACK
       deadline = d
#endif
#ifdef M_DRAIN_FREES_LOCKED
    :: state_of(v) == VACANT -> give_back()
#else
    :: state_of(v) == VACANT && !(v & LOCKED) -> give_back()
#endif
    :: else -> skip
    fi
}

/* The owner writes another deadline; v: what the word said. In the inbox: the drain will look at the deadline. */
inline move_to(when) {
    d = deadline;
    deadline = when;
    if
    :: !(v & LINKED) && when < d -> move_ticket(when)
    :: else -> skip
    fi
}

/* The user's code has returned: what it has armed or postponed by a delay gets its deadline. */
inline stamp(when, is_new) {
#ifdef M_STAMP_LOOKS_FIRST
    v = word;
#endif
#ifndef M_STAMP_UNANNOUNCED
    is_stamping = true;
#endif
#ifndef M_STAMP_LOOKS_FIRST
    v = word;
#endif
    if
    :: life_of(v) == life && state_of(v) == ARMED ->
       if
       :: is_new && !(v & (MOVED | LOCKED)) -> deadline = when; ticket = when
       :: is_new && (v & (MOVED | LOCKED)) -> ticket = deadline
       :: !is_new && !(v & (MOVED | LOCKED)) -> move_to(when)
       :: else -> skip
       fi
    :: else -> skip
    fi;
    is_stamping = false
}

inline arm_here(when) {
    take_record(when);
    is_numbered = true;
    life = life_of(word);
    deadline = (by_delay -> FAR_AWAY : when);
    word = with_state(word, ARMED);
    if
    :: by_delay -> stamp(when, true)
    :: else -> ticket = when
    fi
}

/* From here on the owner's deadline is in force, unless the timer has ended. */
inline ask_for(when) {
    if
    :: life_of(word) == life && state_of(word) == ARMED -> in_force = when
    :: else -> skip
    fi
}

/* A delay is asked for at the look at the word that finds no mark by others: a mark that is there later is newer. */
inline postpone_here(when) {
    atomic {
        v = word;
        life = life_of(v);
#ifndef M_POSTPONE_KEEPS_MOVED
        v = v & ~MOVED;
        word = v;
#endif
        if
        :: by_delay && is_numbered -> ask_for(when)
        :: else -> skip
        fi
    };
    if
    :: state_of(v) != ARMED -> skip
    :: state_of(v) == ARMED && by_delay && is_numbered -> stamp(when, false)
    :: state_of(v) == ARMED && !(by_delay && is_numbered) ->
       d = deadline;
       atomic { ask_for(when); deadline = when };
       if
       :: is_numbered && !(v & LINKED) && when < d -> move_ticket(when)
       :: else -> skip
       fi
    fi
}

inline run_callback() {
    ticket = NOWHERE;
    v = word;
    won = false;
    if
    :: is_periodic && now < LAST_TICK ->
       do
#ifndef M_LAST_RUN_IGNORED
       :: v & LAST_RUN -> break
#endif
       :: else ->
          deadline = LAST_TICK;
          ticket = LAST_TICK;
          n = with_state(v, ARMED);
          atomic {
              if
              :: word == v -> word = n; in_force = LAST_TICK; won = true
              :: else -> v = word; won = false
              fi
          };
          if
          :: won -> break
          :: else -> ticket = NOWHERE
          fi
       od
    :: else -> skip
    fi;
    if
    :: won -> skip
    :: else ->
       end_closure();
       v = word;
       do
       :: n = life_of(v) * ONE_LIFE + NEXT_LIFE + (v & LINKED);
          swap(v, n);
          if
          :: won -> break
          :: else -> skip
          fi
       od;
       if
#ifdef M_RUN_FREES_LINKED
       :: true -> give_back()
#else
       :: !(n & LINKED) -> give_back()
       :: else -> skip
#endif
       fi
    fi
}

/* One look at the ticket that is due: first at the deadline, then at the word. */
inline fire() {
    d = deadline;
    if
    :: d != ticket -> ticket = d
    :: else ->
       v = word;
       if
       :: state_of(v) != ARMED -> ticket = NOWHERE
#ifndef M_FIRES_LOCKED
       :: state_of(v) == ARMED && (v & LOCKED) -> skip
#endif
       :: state_of(v) == ARMED && !(v & LOCKED) && (v & MOVED) -> n = v & ~MOVED; swap(v, n)
#ifdef M_FIRES_LOCKED
       :: state_of(v) == ARMED && ((v & LOCKED) || !(v & MOVED)) ->
#else
       :: state_of(v) == ARMED && !(v & (LOCKED | MOVED)) ->
#endif
          n = with_state(v, RUNNING);
          atomic {
              if
              :: word == v -> word = n; won = true; assert(now >= in_force && !was_last_run)
              :: else -> won = false
              fi
          };
          if
          :: won -> run_callback()
          :: else -> skip
          fi
       fi
    fi
}

#define is_at_rest (others == 0 && !is_pushed)

proctype owner(bool cancels; byte postpones_to; bool by_delay) {
    short v, n;
    byte d, life;
    bool won, is_held, is_over;
    do
    :: is_pushed -> obey()
    :: ticket <= now -> fire()
    :: is_free && begun < lives && begun >= first_here -> arm_here(LAST_TICK - 1)
    :: cancels && state_of(word) == ARMED -> cancels = false; life = life_of(word); cancel(life, true)
    :: postpones_to != NOWHERE && state_of(word) == ARMED -> postpone_here(postpones_to); postpones_to = NOWHERE
    :: atomic {
           is_at_rest && ticket > now && begun == lives ->
           assert(state_of(word) != ARMED || (ticket <= in_force && deadline == in_force));
           assert((word & LOCKED) == 0);
           is_over = now == LAST_TICK
       };
       if
       :: is_over -> break
       :: else -> (now == LAST_TICK || ticket <= now)
       fi
    od;
    assert(is_free && !has_closure)
}

active proctype clock() {
    do
    :: now < LAST_TICK -> now++
    :: else -> break
    od
}

init {
    atomic {
        if
        :: /* Armed elsewhere, postponed and cancelled by others, used again. */
           others = 3;
           first_here = 1;
           run armer(2);
           if
           :: run postponer(0, 1)
           :: run postponer(0, 4)
           fi;
           run canceller(0);
           run owner(false, NOWHERE, false)
        :: /* Armed elsewhere, postponed by two. */
           lives = 1;
           others = 3;
           first_here = 1;
           run armer(2);
           run postponer(0, 1);
           run postponer(0, 4);
           run owner(false, NOWHERE, false)
        :: /* Armed by the owner, with a delay or a time; postponed and cancelled by others. */
           others = 2;
           if
           :: run postponer(0, 1)
           :: run postponer(0, 4)
           fi;
           run canceller(0);
           if
           :: run owner(false, NOWHERE, true)
           :: run owner(false, NOWHERE, false)
           fi
        :: /* The owner cancels, somebody else postpones. */
           others = 1;
           if
           :: run postponer(0, 1)
           :: run postponer(0, 4)
           fi;
           run owner(true, NOWHERE, false)
        :: /* The owner postpones, and so does somebody else. */
           lives = 1;
           others = 1;
           if
           :: run postponer(0, 1)
           :: run postponer(0, 3)
           :: run postponer(0, 4)
           fi;
           if
           :: run owner(false, 1, true)
           :: run owner(false, 2, true)
           :: run owner(false, 4, true)
           :: run owner(false, 2, false)
           :: run owner(false, 4, false)
           fi
        :: /* A periodic timer is cancelled, and postponed. */
           lives = 1;
           is_periodic = true;
           others = 2;
           run canceller(0);
           run postponer(0, 1);
           run owner(false, NOWHERE, false)
        fi
    }
}
