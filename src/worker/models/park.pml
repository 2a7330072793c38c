/* SPDX-License-Identifier: MIT */
/* mutants: M_PUBLISH_BUFFERED M_NO_RECHECK M_LOOK_BEFORE_PUSH M_ANY_DEADLINE_WILL_DO M_STOP_UNSEEN M_STOP_LOOKS_FIRST */
/* mutants: M_WORK_UNSEEN M_LAST_WORK_SILENT M_PARKED_WORK_LATE M_TICKET_LATE M_NO_BELL M_GARBAGE_SILENT */
/* mutants: M_LINKED_IS_SILENT M_RINGS_FOR_OWN_TARGET M_ORDERS_UNSEEN M_ORDER_COMES_LATE M_STOPPED_IS_SILENT */
/* mutants: M_LATE_ARM_IS_KEPT */

/* How a loop goes to sleep and how it is woken: inbox.hpp, parking.hpp, begin_park(), end_park(), park() and has_orders() in
 * worker.cpp, ring_for(), send() and drop_work() in hot_paths.hpp, stop_timers() in crew.cpp, run() and stop() in io_context.cpp.
 *
 * Time stands still until everybody is blocked. At that moment nothing may be due, no woken task may wait, a loop that
 * was stopped or has no work left must have returned, and when the timers were stopped nothing may be armed or in the
 * inbox: whatever else is the case then is a lost wake-up.
 *
 * The loop's stores that are not seq_cst go through a buffer, as they do in hardware. Those of the others are all
 * compare-and-swaps or seq_cst. Publishing and withdrawing are seq_cst; only one of the two has to be, as far as this
 * model goes: a loop that is awake and still seems to sleep is rung once more than it has to. What withdrawing late
 * would do among several workers is in steal.pml.
 *
 * M_PUBLISH_BUFFERED      the deadline is published by a plain store: the second look may overtake it
 * M_NO_RECHECK            no second look into the inbox
 * M_LOOK_BEFORE_PUSH      a sender looks at what is published, then pushes
 * M_ANY_DEADLINE_WILL_DO  a sender does not wake a loop that will wake up by itself some day
 * M_STOP_UNSEEN           the stop flag is not looked at again after publishing
 * M_STOP_LOOKS_FIRST      stop() looks whether the loop sleeps before it sets the flag
 * M_WORK_UNSEEN           the amount of work is not looked at again after publishing
 * M_LAST_WORK_SILENT      whoever ends the last work does not wake the loop
 * M_PARKED_WORK_LATE      the loop's own share of the work is stored after the deadline is published
 * M_TICKET_LATE           the bell is read after publishing
 * M_NO_BELL               a waker only wakes, and a loop that is about to sleep does not notice
 * M_GARBAGE_SILENT        what piles up in the inbox never wakes the loop
 * M_LINKED_IS_SILENT      a record that is linked already: neither pushed nor rung for
 * M_RINGS_FOR_OWN_TARGET  a pusher rings for what it wanted itself, though others relied on its push meanwhile
 * M_ORDERS_UNSEEN         that the timers were stopped is not looked at again after publishing
 * M_ORDER_COMES_LATE      whoever stops the timers wakes the loop first and says so then
 * M_STOPPED_IS_SILENT     when the timers were stopped, what nobody waits for is pushed as silently as ever
 * M_LATE_ARM_IS_KEPT      neither who arms nor the loop that accepts it looks whether the timers were stopped; one of
 *                         the two would do
 */

#define RECORDS 3
#define AWAKE 0
#define NEVER 9
#define LAST_TICK 4

/* What a record's word says. */
#define ABSENT 0
#define ARMED 1
#define SCHEDULED 2   /* A sleeping task that was woken. */
#define ENDED 3

#define bit(k) (1 << (k))

byte now = 1;

byte state[RECORDS];
bool linked[RECORDS];
byte deadline[RECORDS];
byte ticket_at[RECORDS];    /* Where its ticket sits in the wheel. */
byte in_wheel = 0;          /* A bit for each record. */
byte inbox = 0;
byte undrained = 0;
byte most_undrained = 99;

byte published = AWAKE;
byte bell = 0;
bool is_asleep = false;
short foreign_work = 0;
short local_work = 0;
short parked_work = 0;
bool is_stopped = false;      /* The loop, by io_context::stop(). */
bool are_stopped = false;     /* The timers: is_stopped_ of the crew. */
bool is_swept = false;
bool has_returned = false;
byte spurious_left = 0;

/* --- The loop's store buffer. */

mtype = { to_published, to_parked_work };
chan buffer = [3] of { mtype, short };
#define buffer_is_empty (empty(buffer))

active proctype hardware() {
    mtype where;
    short value;
end:
    do
    :: atomic {
           buffer ? where, value ->
           if
           :: where == to_published -> published = value
           :: else -> parked_work = value
           fi;
           value = 0
       }
    od
}

/* --- Senders. */

/* wake_before(): one look, one try; who fails was overtaken by somebody who makes the loop look at everything. */
inline wake_before(when) {
#ifndef M_LOOK_BEFORE_PUSH
    seen = published;  /* [park: look] */
#endif
    won = false;
    if
#ifdef M_ANY_DEADLINE_WILL_DO
    :: seen == NEVER && when < seen ->
#else
    :: seen != AWAKE && when < seen ->
#endif
       atomic {
           if
           :: published == seen -> published = AWAKE; won = true  /* [park: wake] */
           :: else -> skip
           fi
       };
       if
       :: won ->
#ifndef M_NO_BELL
          bell++;  /* [park: ring] */
#endif
          is_asleep = false
       :: else -> skip
       fi
    :: else -> skip
    fi
}

/* ring_for(): after a push, or when somebody else has pushed it already. When everything stops, somebody waits until all
 * is drained. */
inline ring_for(when, is_much) {
    if
#ifdef M_STOPPED_IS_SILENT
    :: is_much -> wake_before(0)
#else
    :: is_much || are_stopped -> wake_before(0)  /* [park: hurry] */
#endif
    :: else -> wake_before(when)
    fi
}

/* inbox::push(). */
inline push(k) {
#ifdef M_LOOK_BEFORE_PUSH
    seen = published;
#endif
    atomic {
        assert(!(inbox & bit(k)));
        inbox = inbox | bit(k);  /* [park: push] */
        undrained++;
        many = undrained >= most_undrained
    }
#ifdef M_GARBAGE_SILENT
    many = false;
#endif
}

/* crew::drop_work(). */
inline drop_work() {
    atomic { foreign_work--; left = foreign_work };  /* [park: drop work] */
    seen = published;
#ifndef M_LAST_WORK_SILENT
    if
    :: seen != AWAKE ->
       if
       :: left + parked_work == 0 -> wake_before(0)  /* [park: last work] */
       :: else -> skip
       fi
    :: else -> skip
    fi
#endif
}

/* Cancels a record; linked: the drain gives it back, otherwise it is pushed for that: cancel_whatever(),
 * end_cancelled(). */
inline cancel(k) {
    atomic {
        if
        :: state[k] == ARMED -> state[k] = ENDED; is_mine = true; pushes = !linked[k]; linked[k] = true
        :: else -> skip
        fi
    };
    if
    :: pushes ->
       push(k);
       ring_for(NEVER, many)       /* It is no reason to wake anybody. */
    :: else -> skip
    fi;
    if
    :: is_mine -> drop_work()
    :: else -> skip
    fi
}

/* Arms a record from elsewhere: arm_elsewhere(), end_if_stopped(). */
proctype armer(byte k; byte begin; byte when) {
    byte seen;
    short left;
    bool won, many, is_mine, pushes;
    (now >= begin);
    foreign_work++;
    d_step { deadline[k] = when; state[k] = ARMED; linked[k] = true };
    push(k);
    ring_for(when, many);
#ifndef M_LATE_ARM_IS_KEPT
    if
    :: are_stopped -> cancel(k)  /* [park: end late arm] */
    :: else -> skip
    fi
#endif
}

/* Once it is armed. */
proctype canceller(byte k) {
    byte seen;
    short left;
    bool won, many, is_mine, pushes;
    (state[k] != ABSENT);
    cancel(k)
}

/* Gives up a work guard, or ends a job. */
proctype releaser() {
    byte seen;
    short left;
    bool won;
    drop_work()
}

/* Gives a record an earlier deadline from elsewhere: postpone_from_elsewhere(). */
proctype mover(byte k; byte target) {
    byte seen;
    bool won, many, is_earlier, pushes;
    atomic {
        if
        :: state[k] == ARMED ->
           is_earlier = target < deadline[k];
           deadline[k] = target;
           pushes = is_earlier && !linked[k];
           linked[k] = linked[k] || pushes
        :: else -> skip
        fi
    };
    if
    :: pushes ->
       push(k);
#ifdef M_RINGS_FOR_OWN_TARGET
       ring_for(target, many)
#else
       /* Since the record was linked, others have left it to this push to be noticed. */
       if
       :: state[k] != ARMED || deadline[k] != target -> wake_before(0)  /* [park: overtaken] */
       :: else -> ring_for(target, many)
       fi
#endif
    :: else ->
#ifndef M_LINKED_IS_SILENT
       if
       :: is_earlier -> ring_for(target, false)  /* ring_owner() [park: linked already]. */
       :: else -> skip
       fi
#endif
    fi
}

/* Wakes a sleeping task from elsewhere: crew::wake(). */
proctype waker(byte k) {
    byte seen;
    bool won, many, is_mine, pushes;
    atomic {
        if
        :: state[k] == ARMED -> state[k] = SCHEDULED; is_mine = true; pushes = !linked[k]; linked[k] = true
        :: else -> skip
        fi
    };
    if
    :: pushes -> push(k)
    :: else -> skip
    fi;
    if
#ifdef M_LINKED_IS_SILENT
    :: is_mine && pushes -> wake_before(0)
#else
    :: is_mine -> wake_before(0)
#endif
    :: else -> skip
    fi
}

/* crew::stop_timers(). */
proctype timer_stopper() {
    byte seen;
    bool won;
#ifdef M_ORDER_COMES_LATE
    wake_before(0);
    are_stopped = true
#else
    are_stopped = true;
    wake_before(0)  /* [park: stop timers] */
#endif
}

/* io_context::stop(). */
proctype stopper() {
    byte seen;
    bool won;
#ifdef M_STOP_LOOKS_FIRST
    seen = published;
    is_stopped = true;
    if
    :: seen != AWAKE -> wake_before(0)
    :: else -> skip
    fi
#else
    is_stopped = true;
    wake_before(0)  /* [park: stop loop] */
#endif
}

/* --- The loop. */

/* Everything that was pushed; it stays linked until the loop looks at the word. What comes when everything has stopped
 * ends at once: obey(), accept(). */
inline obey() {
    atomic { taken = inbox; inbox = 0; undrained = 0 };  /* [park: drain] */
    if
    :: taken != 0 ->
       d_step {
           k = 0;
           do
           :: k < RECORDS ->
              if
              :: taken & bit(k) ->
                 linked[k] = false;
                 if
#ifndef M_LATE_ARM_IS_KEPT
                 :: state[k] == ARMED && are_stopped -> state[k] = ENDED; local_work--  /* [park: accept late arm] */
                 :: state[k] == ARMED && !are_stopped ->
#else
                 :: state[k] == ARMED ->
#endif
                    if
                    :: !(in_wheel & bit(k)) || deadline[k] < ticket_at[k] -> ticket_at[k] = deadline[k]
                    :: else -> skip
                    fi;
                    in_wheel = in_wheel | bit(k)
                 :: state[k] == SCHEDULED -> state[k] = ENDED; local_work--
                 :: else -> skip
                 fi
              :: else -> skip
              fi;
              k++
           :: else -> break
           od;
           k = 0;
           taken = 0
       }
    :: else -> skip
    fi
}

/* The timers were stopped: all that are armed end, here or in the inbox. sweep(). */
inline sweep() {
    if
    :: are_stopped && !is_swept ->
       d_step {
           k = 0;
           do
           :: k < RECORDS ->
              if
              :: state[k] == ARMED -> state[k] = ENDED; local_work--; in_wheel = in_wheel & ~bit(k)
              :: else -> skip
              fi;
              k++
           :: else -> break
           od;
           k = 0;
           is_swept = true  /* [park: sweep] */
       }
    :: else -> skip
    fi
}

/* Fires what is due, moves the tickets whose timers were postponed, and answers when to come back. */
inline fire() {
    d_step {
        until = NEVER;
        k = 0;
        do
        :: k < RECORDS ->
           if
           :: (in_wheel & bit(k)) && ticket_at[k] <= now ->
              if
              :: state[k] == ARMED && deadline[k] <= now ->
                 state[k] = ENDED;
                 local_work--;
                 in_wheel = in_wheel & ~bit(k)
              :: state[k] == ARMED && deadline[k] > now -> ticket_at[k] = deadline[k]
              :: else -> in_wheel = in_wheel & ~bit(k)
              fi
           :: else -> skip
           fi;
           if
           :: (in_wheel & bit(k)) && ticket_at[k] < until -> until = ticket_at[k]
           :: else -> skip
           fi;
           k++
        :: else -> break
        od;
        k = 0
    }
}

/* parking::withdraw(). */
inline withdraw() { atomic { buffer_is_empty -> published = AWAKE } }  /* [park: withdraw] */

/* begin_park(), after publishing. */
inline look_again() {  /* [park: look again] */
    is_needed = false;
#ifndef M_NO_RECHECK
    is_needed = inbox != 0;
#endif
#ifndef M_WORK_UNSEEN
    is_needed = is_needed || local_work + foreign_work == 0;
#endif
#ifndef M_STOP_UNSEEN
    is_needed = is_needed || is_stopped;
#endif
#ifndef M_ORDERS_UNSEEN
    is_needed = is_needed || (are_stopped && !is_swept)     /* has_orders(). */
#endif
}

proctype loop() {
    byte k, taken, until, ticket;
    bool is_needed;
    do
    :: is_stopped -> break
    :: else ->
       obey();
       sweep();
       fire();
       if
       :: local_work + foreign_work == 0 -> break
       :: else -> skip
       fi;

#ifndef M_PARKED_WORK_LATE
       buffer ! to_parked_work, local_work;  /* [park: own work] */
#endif
#ifndef M_TICKET_LATE
       ticket = bell;  /* [park: note the bell] */
#endif
#ifdef M_PUBLISH_BUFFERED
       buffer ! to_published, until;
#else
       atomic { buffer_is_empty -> published = until };  /* [park: publish] */
#endif
#ifdef M_PARKED_WORK_LATE
       buffer ! to_parked_work, local_work;
#endif
#ifdef M_TICKET_LATE
       ticket = bell;
#endif
       look_again();
       if
       :: is_needed -> withdraw()
       :: else ->
          /* Entering the kernel empties the buffer; it sleeps only if the bell still shows the ticket. */
          atomic { buffer_is_empty -> is_asleep = (bell == ticket) };  /* [park: sleep] */
end_asleep:
          if
          :: !is_asleep -> skip
          :: is_asleep && now >= until -> is_asleep = false
          :: is_asleep && spurious_left > 0 -> atomic { spurious_left--; is_asleep = false }
          fi;
          withdraw()
       fi;
       ticket = 0
    od;
    has_returned = true
}

/* --- Time, and what must be true whenever it moves on. */

active proctype clock() {
    byte k;
end:
    do
    :: timeout ->
       d_step {
           k = 0;
           do
           :: k < RECORDS ->
              assert(has_returned || !(state[k] == ARMED && deadline[k] <= now));
              assert(has_returned || state[k] != SCHEDULED);
              assert(has_returned || !are_stopped || state[k] != ARMED);
              k++
           :: else -> break
           od;
           k = 0;
           assert(has_returned || local_work + foreign_work != 0);
           assert(has_returned || !is_stopped);
           assert(has_returned || undrained < most_undrained);
           assert(has_returned || !are_stopped || (is_swept && inbox == 0))
       };
       if
       :: now < LAST_TICK -> now++
       :: else -> break
       fi
    od
}

/* A record that the loop has armed itself. */
inline arm_here(k, when) {
    state[k] = ARMED;
    deadline[k] = when;
    ticket_at[k] = when;
    in_wheel = in_wheel | bit(k);
    local_work++
}

init {
    atomic {
        if
        :: /* Two threads arm: earlier or later than each other and than what the loop waits for. */
           arm_here(2, 3);
           if
           :: run armer(0, 1, 1); run armer(1, 1, 2)
           :: run armer(0, 1, 2); run armer(1, 2, 2)
           :: run armer(0, 1, 4); run armer(1, 1, 2)
           fi
        :: /* Somebody arms at a loop that waits for nothing but a guard; somebody else cancels. */
           foreign_work = 1;
           if
           :: run armer(0, 1, 2)
           :: run armer(0, 2, NEVER)
           fi;
           run canceller(0);
           run releaser()
        :: /* Stopped, while somebody arms and the kernel wakes for no reason. */
           arm_here(2, 4);
           spurious_left = 1;
           run armer(0, 1, 2);
           run stopper()
        :: /* The last work ends elsewhere: a timer that was armed for ever, and a guard. */
           arm_here(2, NEVER);
           foreign_work = 1;
           run canceller(2);
           run releaser()
        :: /* Several want something of one record before it is in the inbox; another timer is due in between. */
           arm_here(0, 5);
           arm_here(1, 3);
           run mover(0, 4);
           if
           :: run mover(0, 2)
           :: run waker(0)
           :: run canceller(0)
           fi
        :: /* What nobody waits for piles up. */
           arm_here(2, NEVER);
           most_undrained = 2;
           run armer(0, 1, NEVER);
           run armer(1, 1, NEVER);
           run canceller(0)
        :: /* The timers are stopped, while somebody arms and somebody cancels; a guard keeps the loop. */
           arm_here(2, 4);
           foreign_work = 1;
           run timer_stopper();
           run armer(0, 1, 3);
           run canceller(2)
        fi;
        run loop()
    }
}
