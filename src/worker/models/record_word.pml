/* SPDX-License-Identifier: MIT */
/* mutants: M_STORE_UNLOCKED M_NO_MOVED M_FIRES_LOCKED M_PUSHES_LINKED M_DRAIN_FREES_LOCKED M_RUN_FREES_LINKED */
/* mutants: M_CANCELLER_FREES M_SAME_LIFE M_UNLOCK_SILENT M_LAST_RUN_IGNORED M_LOOKS_THEN_STORES */
/* mutants: M_SHORT_OF_LINKED M_SHORT_OF_LOCKED */
/* mutants: M_ACCEPT_WRITES_BACK M_STAMP_UNANNOUNCED M_STAMP_LOOKS_FIRST M_POSTPONE_KEEPS_MOVED M_DRAIN_WANTS_MOVED */
/* mutants: M_PREPARING_ARMED_BLINDLY M_PREPARING_UNSEEN M_PREPARING_CANCELLED_TWICE M_WATCHED_BEFORE_PREPARING */
/* mutants: M_POSTED_IS_CANCELLED */

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
 * A timer with a token is prepared before it is armed: the token is watched already, and may cancel it at any step. Nobody
 * answers twice that it was cancelled, and what was cancelled so does not run; nor does a token that is cancelled find
 * nothing while the timer is still to come. A function that is posted goes through the same record, inbox and owner, but
 * cannot be cancelled or postponed, whatever handle somebody makes up.
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
 * M_PREPARING_ARMED_BLINDLY    what was prepared is armed by a store
 * M_PREPARING_UNSEEN           who cancels a timer that is being prepared finds nothing
 * M_PREPARING_CANCELLED_TWICE  who cancels it while it is being prepared does not look whether somebody has
 * M_WATCHED_BEFORE_PREPARING   the token is watched before the word says that the timer is being prepared
 * M_POSTED_IS_CANCELLED        a function that is posted is cancelled like a timer
 */

#define LAST_TICK 4
#define NOWHERE 14
#define FAR_AWAY 13

#define VACANT 0
#define ARMED 1
#define RUNNING 2
#define ENDING 3
#define PREPARING 4
#define POSTED 5
#define STATE 7
#define LINKED 8
#define LOCKED 16
#define MOVED 32
#define LAST_RUN 64
#define ONE_LIFE 128

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
bool is_ready = false;       /* Its link is in use by the ready queue: it is posted. */
bool is_free = true;
bool is_stamping = false;
bool is_watched = false;     /* The token of the first timer can cancel it. */
byte now = 0;
byte others = 0;             /* How many other threads are not through. */

/* What an observer knows. */
byte in_force = 0;
bool has_closure = false;
bool was_last_run = false;   /* Nothing of it may run any more. */
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

inline push() { atomic { assert(!is_pushed && !is_ready); is_pushed = true } }

/* The answer to who has cancelled it: nobody has got it before, nor heard that this is the last run. */
inline answer_cancelled(life) { assert(begun == life + 1 && !was_last_run) }

inline give_back() {
    atomic {
        assert(!is_free && !is_pushed && !is_ready && !has_closure);
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
       n = with_state(v, VACANT) | (is_held || is_here -> 0 : LINKED);  /* [record_word: end cancelled] */
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
       /* The first steps of cancel(), or cancel_elsewhere(): nobody is at it, and there is nothing to destroy. */
       n = ((v & ~NO_FLAGS) | (is_here -> 0 : LINKED)) + NEXT_LIFE;  /* [record_word: cancel at once] */
       atomic {
           if
           :: word == v -> word = n; answer_cancelled(life); end_closure(); won = true
           :: else -> v = word; won = false
           fi
       };
       if
       :: won && is_here -> give_back(); break
       :: won && !is_here -> deadline = FAR_AWAY; push(); break   /* Where the next one lies. */
       :: else -> skip
       fi
#ifdef M_POSTED_IS_CANCELLED
    :: life_of(v) == life && (state_of(v) == ARMED || state_of(v) == POSTED) ->
#else
    :: life_of(v) == life && state_of(v) == ARMED ->
#endif
       n = (with_state(v, ENDING) & ~MOVED) + NEXT_LIFE;  /* [record_word: cancel] */
       atomic {
           if
           :: word == v -> word = n; answer_cancelled(life); won = true
           :: else -> v = word; won = false
           fi
       };
       if
       :: won -> end_cancelled(is_here); break
       :: else -> skip
       fi
#ifdef M_PREPARING_CANCELLED_TWICE
    :: life_of(v) == life && state_of(v) == PREPARING ->
#else
    :: life_of(v) == life && state_of(v) == PREPARING && (v & LAST_RUN) -> break
    :: life_of(v) == life && state_of(v) == PREPARING && !(v & LAST_RUN) ->
#endif
#ifdef M_PREPARING_UNSEEN
       break
#else
       n = v | LAST_RUN;  /* [record_word: cancel prepared] */
       atomic {
           if
           :: word == v -> word = n; answer_cancelled(life); was_last_run = true; won = true
           :: else -> v = word; won = false
           fi
       };
       if
       :: won -> break
       :: else -> skip
       fi
#endif
    :: life_of(v) == life && state_of(v) == RUNNING ->
       n = v | LAST_RUN;  /* [record_word: last run] */
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
    word = with_state(word, ARMED) | LINKED;  /* [record_word: arm elsewhere] */
    push();
    others--
}

/* A timer with a token: arm_with_extra(). Cancelled while it was prepared, it ends like any other that was cancelled. */
inline arm_prepared(is_here) {
#ifdef M_WATCHED_BEFORE_PREPARING
    is_watched = true;
#endif
    word = with_state(word, PREPARING);  /* [record_word: prepare] */
    is_watched = true;  /* [record_word: watch] */
    deadline = in_force;  /* [record_word: write the first deadline] */
    n = with_state(word & ~LAST_RUN, ARMED) | (is_here -> 0 : LINKED);
#ifdef M_PREPARING_ARMED_BLINDLY
    atomic { word = n; won = true };
#else
    v = with_state(n & ~LINKED, PREPARING);
    swap(v, n);  /* [record_word: arm prepared] */
#endif
    if
    :: won -> skip
    :: else ->
       word = with_state(n & ~LINKED, ENDING) + NEXT_LIFE;  /* [record_word: end prepared] */
       end_cancelled(is_here);
       won = false
    fi
}

proctype armer_with_token(byte when) {
    short v, n;
    bool won, is_held;
    atomic { is_free -> take_record(when) };
    arm_prepared(false);
    if
    :: won -> push()
    :: else -> skip
    fi;
    others--
}

/* A token that is cancelled: whatever it finds, the timer does not run any more when it was not running. */
proctype token() {
    short v, n;
    bool won, is_held;
    (is_watched);
    cancel(0, false);
    assert(was_last_run || life_of(word) > 0);
    others--
}

/* post(), of a function, from elsewhere. */
proctype poster() {
    atomic { is_free -> take_record(0) };
    word = with_state(word, POSTED) | LINKED;  /* [record_word: post] */
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
       n = v | LOCKED;  /* [record_word: lock] */
       swap(v, n);
       if
       :: won -> break
       :: else -> skip
       fi
    od;
    (!is_stamping);  /* [record_word: await stamp] */
#ifdef M_LOOKS_THEN_STORES
    before = deadline;
#endif
    atomic {
        assert(word & LOCKED);
#ifndef M_LOOKS_THEN_STORES
        before = deadline;
#endif
        deadline = target;  /* [record_word: write deadline] */
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
       n = v & ~LOCKED;  /* [record_word: unlock] */
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
    atomic { word = word & ~LINKED; v = word };  /* [record_word: unlink] */
    if
#ifdef M_DRAIN_WANTS_MOVED
    :: state_of(v) == ARMED && is_numbered && !(v & MOVED) -> skip
    :: state_of(v) == ARMED && (!is_numbered || (v & MOVED)) ->
#else
    :: state_of(v) == ARMED ->
#endif
       word = word & ~MOVED;  /* [record_word: accept] */
       d = deadline;
       if
       :: !is_numbered -> is_numbered = true; ticket = d
       :: is_numbered && ticket != NOWHERE -> move_ticket(d)
       :: else -> skip
       fi;
#ifdef M_ACCEPT_WRITES_BACK
       deadline = d
#endif
    :: state_of(v) == POSTED -> atomic { assert(!is_pushed && !is_ready); is_ready = true }
#ifdef M_DRAIN_FREES_LOCKED
    :: state_of(v) == VACANT -> give_back()
#else
    :: state_of(v) == VACANT && !(v & LOCKED) -> give_back()  /* [record_word: give back] */
#endif
    :: else -> skip
    fi
}

/* The owner writes another deadline; v: what the word said. In the inbox: the drain will look at the deadline. */
inline move_to(when) {
    d = deadline;
    deadline = when;  /* [record_word: move] */
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
    is_stamping = true;  /* [record_word: announce stamp] */
#endif
#ifndef M_STAMP_LOOKS_FIRST
    v = word;  /* [record_word: stamp] */
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
    is_stamping = false  /* [record_word: end stamp] */
}

/* run_posted(): nobody else changes such a word. */
inline run_posted() {
    is_ready = false;
    end_closure();
    v = word;
    word = with_state(v, VACANT) + NEXT_LIFE;  /* [record_word: end posted] */
    give_back()
}

/* arm_with_extra(), by the owner. */
inline arm_here_with_token(when) {
    take_record(when);
    is_numbered = true;
    life = life_of(word);
    arm_prepared(true);
    if
    :: won -> ticket = when
    :: else -> skip
    fi
}

inline arm_here(when) {
    take_record(when);
    is_numbered = true;
    life = life_of(word);
    deadline = (by_delay -> FAR_AWAY : when);
    word = with_state(word, ARMED);  /* [record_word: arm here] */
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
        v = v & ~MOVED;  /* [record_word: take mark off] */
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
          n = with_state(v, ARMED);  /* [record_word: arm again] */
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
       :: n = life_of(v) * ONE_LIFE + NEXT_LIFE + (v & LINKED);  /* [record_word: end run] */
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
       :: state_of(v) == ARMED && (v & LOCKED) -> skip  /* [record_word: defer] */
#endif
       /* [record_word: look again] */
       :: state_of(v) == ARMED && !(v & LOCKED) && (v & MOVED) -> n = v & ~MOVED; swap(v, n)
#ifdef M_FIRES_LOCKED
       :: state_of(v) == ARMED && ((v & LOCKED) || !(v & MOVED)) ->
#else
       :: state_of(v) == ARMED && !(v & (LOCKED | MOVED)) ->
#endif
          n = with_state(v, RUNNING);  /* [record_word: fire] */
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

proctype owner(bool cancels; byte postpones_to; bool by_delay; bool has_token) {
    short v, n;
    byte d, life;
    bool won, is_held, is_over;
    do
    :: is_pushed -> obey()
    :: ticket <= now -> fire()
    :: is_ready -> run_posted()
    :: has_token && is_free && begun == 0 -> arm_here_with_token(2)
    :: !(has_token && begun == 0) && is_free && begun < lives && begun >= first_here -> arm_here(LAST_TICK - 1)
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
        :: /* A timer with a token, which is cancelled. The record is used again, or the timer is cancelled, too. */
           others = 1;
           run token();
           if
           :: true -> skip
           :: lives = 1; others++; run canceller(0)
           fi;
           if
           :: others++; first_here = 1; run armer_with_token(2); run owner(false, NOWHERE, false, false)
           :: run owner(false, NOWHERE, false, true)
           fi
        :: /* A function is posted, and somebody has a handle that names it; the record is used again. */
           others = 2;
           first_here = 1;
           run poster();
           if
           :: run canceller(0)
           :: run postponer(0, 1)
           fi;
           run owner(false, NOWHERE, false, false)
        :: /* Armed elsewhere, postponed and cancelled by others, used again. */
           others = 3;
           first_here = 1;
           run armer(2);
           if
           :: run postponer(0, 1)
           :: run postponer(0, 4)
           fi;
           run canceller(0);
           run owner(false, NOWHERE, false, false)
        :: /* Armed elsewhere, postponed by two. */
           lives = 1;
           others = 3;
           first_here = 1;
           run armer(2);
           run postponer(0, 1);
           run postponer(0, 4);
           run owner(false, NOWHERE, false, false)
        :: /* Armed by the owner, with a delay or a time; postponed and cancelled by others. */
           others = 2;
           if
           :: run postponer(0, 1)
           :: run postponer(0, 4)
           fi;
           run canceller(0);
           if
           :: run owner(false, NOWHERE, true, false)
           :: run owner(false, NOWHERE, false, false)
           fi
        :: /* The owner cancels, somebody else postpones. */
           others = 1;
           if
           :: run postponer(0, 1)
           :: run postponer(0, 4)
           fi;
           run owner(true, NOWHERE, false, false)
        :: /* The owner postpones, and so does somebody else. */
           lives = 1;
           others = 1;
           if
           :: run postponer(0, 1)
           :: run postponer(0, 3)
           :: run postponer(0, 4)
           fi;
           if
           :: run owner(false, 1, true, false)
           :: run owner(false, 2, true, false)
           :: run owner(false, 4, true, false)
           :: run owner(false, 2, false, false)
           :: run owner(false, 4, false, false)
           fi
        :: /* A periodic timer is cancelled, and postponed. */
           lives = 1;
           is_periodic = true;
           others = 2;
           run canceller(0);
           run postponer(0, 1);
           run owner(false, NOWHERE, false, false)
        fi
    }
}
