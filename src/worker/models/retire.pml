/* SPDX-License-Identifier: MIT */
/* mutants: M_CLOSED_DROPS M_CLOSE_SPLIT M_LEFTOVERS_KEPT M_SENDER_SILENT M_SENDER_LOOKS_FIRST M_NO_HEIR */
/* mutants: M_INBOX_UNSEEN M_MERGED_UNSEEN M_OWNER_KEPT M_OWNER_LATE M_MARK_KEPT M_COUNTS_TWICE M_POURS_LINKED */
/* mutants: M_POURS_VACANT M_POURS_OTHERS M_SEAT_UNSCANNED M_SCAN_LINKED M_SCAN_LOCKED M_SCAN_ENDING */
/* mutants: M_DRAIN_FREES_LOCKED M_PUSHES_LINKED M_ARMS_UNNUMBERED M_MERGED_TAKEN_FIRST */
/* mutants: M_MERGED_OBEYED_LAST M_LATER_UNSEEN M_LATER_KEPT M_LEFT_NUMBER_UNKNOWN M_LEFT_NUMBER_LOW */
/* mutants: M_LEFT_NUMBER_READ_FIRST */

/* How a worker leaves and others take over what it had: worker_retire.cpp, send() in hot_paths.hpp, send_to_all(), add_worker() and
 * is_seat_clean() in crew.cpp, take_commands(), obey_one(), adopt() and adopt_some() in worker_commands.cpp, and those who want
 * something of a timer meanwhile: arm() in crew_timers.cpp, cancel() in crew_cancel.cpp, postpone() in crew_postpone.cpp.
 *
 * Every record has a word, and an owner: the worker in whose wheel its ticket is. Whoever wants something of the owner
 * sets `linked` in the word, in the step that gives him the right to, and pushes the record onto the owner's inbox. If
 * that is closed, the record becomes nobody's and goes to the merge queue, which is never closed, and somebody who is
 * parked is woken. Every turn takes both. Whoever drains a record that is not his own forgets the ticket that it had,
 * becomes its owner, and only then takes `linked` off; from that moment on others may link it again, and will send it
 * to him.
 *
 * A worker that retires closes its inbox by an exchange, and gives what was in it, and what it had taken and not obeyed
 * yet, to the merge queue. Then it links every record that is its own and armed, and gives it away too; what somebody
 * else has linked before he takes to the merge queue himself, for the inbox is closed. Between the look and the link a
 * record may have been linked, adopted by somebody else, and be unlinked again, with a word that looks the same: so
 * after it has linked a record the worker looks once more whose it is, and sends it to whoever that may be. At last it
 * wakes somebody. Whether it closes its inbox or gives its timers away first does not matter.
 *
 * Timers that are not due for a while it gives to a queue of their own, from which whoever takes them obeys a few in a
 * turn, behind the rest, and in any order. They have their numbers. So that what comes after all that he has gets higher
 * ones, whoever gets to which first, who retires says how far he will have counted before anybody can see that his inbox
 * is closed.
 *
 * The seat may be taken by a new worker when no record is owned by it that somebody still may be about to push: one
 * that is linked, locked or ending. A record that somebody arms for the seat after that is a new one, and has no ticket.
 *
 * A closure ends once, and a record is given back once, and not while it is linked or locked. When all has come to
 * rest, what is armed has one valid ticket, in the wheel of its owner, who has not left, and not later than its
 * deadline; nothing is in a queue of nobody's, nor in the inbox of somebody who has left; and as much was adopted as was
 * given away. Timers that one thread has armed one after the other while the worker that it had chosen left are numbered
 * in their order, wherever they are then.
 *
 * Time does not matter here: any ticket may be due at any moment. Nor does it matter who is woken among those who sleep,
 * and what he does first: see steal.pml. A task that sleeps is given away like a timer.
 *
 * M_CLOSED_DROPS        a sender that finds the inbox closed leaves it at that
 * M_CLOSE_SPLIT         the inbox is emptied, and then closed
 * M_LEFTOVERS_KEPT      what was taken from the inbox and not obeyed yet is not given away
 * M_SENDER_SILENT       a sender that finds the inbox closed wakes nobody
 * M_SENDER_LOOKS_FIRST  he looks who is parked before he pushes onto the merge queue
 * M_NO_HEIR             who retires wakes nobody
 * M_INBOX_UNSEEN        the inbox is not looked at again after publishing
 * M_MERGED_UNSEEN       the merge queue is not looked at again after publishing
 * M_OWNER_KEPT          a sender pushes onto the merge queue and does not say that the record is nobody's
 * M_OWNER_LATE          `linked` is taken off before the record has its new owner
 * M_MARK_KEPT           who adopts a record believes that its ticket is in his own wheel
 * M_COUNTS_TWICE        what was nobody's and is given away once more is counted again
 * M_POURS_LINKED        who retires gives away what somebody else has linked
 * M_POURS_VACANT        who retires gives away whatever is his own, armed or not
 * M_POURS_OTHERS        who retires does not look again whose the record is that he has linked
 * M_SEAT_UNSCANNED      a seat is taken as soon as it is empty
 * M_SCAN_LINKED         the scan does not mind records that are linked
 * M_SCAN_LOCKED         the scan does not mind records that are locked
 * M_SCAN_ENDING         the scan does not mind records that are ending
 * M_DRAIN_FREES_LOCKED  the drain gives back a record that is locked
 * M_PUSHES_LINKED       a canceller pushes a record that somebody else has linked
 * M_ARMS_UNNUMBERED     who retires does not number what he has not accepted yet
 * M_MERGED_TAKEN_FIRST  the merge queue is taken before the inbox
 * M_MERGED_OBEYED_LAST  what is in the merge queue is obeyed after what is in the inbox
 * M_LATER_UNSEEN        what is left for later is not looked at again after publishing
 * M_LATER_KEPT          who retires keeps what he has taken of that and not obeyed yet
 * M_LEFT_NUMBER_UNKNOWN who retires does not say how far he will have counted
 * M_LEFT_NUMBER_LOW     he forgets what is in his inbox
 * M_LEFT_NUMBER_READ_FIRST  others look at that before they take what is in the merge queue
 */

#define SEATS 3
#define UNITS 2
#define NOBODY 7
#define EARLY 1
#define LATE 2

/* The word of a record. */
#define VACANT 0
#define ARMED 1
#define RUNNING 2
#define ENDING 3
#define STATE 3
#define LINKED 4
#define LOCKED 8
#define MOVED 16
#define ONE_LIFE 32

#define state_of(value) ((value) & STATE)
#define life_of(value) ((value) / ONE_LIFE)
#define with_state(value, state) (((value) & ~STATE) | (state))

/* A queue of records, first in, first out, is one number: 0 it is empty, 1 record 0, 2 record 1, 3 first record 0 and
 * then record 1, 4 the other way round. */
#define CLOSED 9
#define is_in(queue, u) ((queue) == (u) + 1 || (queue) == 3 || (queue) == 4)
#define first_of(queue) (((queue) - 1) % 2)
#define rest_of(queue) ((queue) > 2 -> 5 - (queue) : 0)
#define joined(one, other) ((one) == 0 -> (other) : ((other) == 0 -> (one) : (one) + 2))

#define bit(k) (1 << (k))

byte seats = 2;             /* In this scenario. */

short word[UNITS];
byte owner[UNITS];
byte deadline[UNITS];
byte mark[UNITS];           /* Which ticket of it is valid; 0: none is. */
byte stamps[UNITS];         /* How many it has had. */

byte tickets[6];            /* In the wheel of each seat, for each record; 0: none. */
byte places[6];             /* The deadlines that they were put in for. */
#define ticket_in(seat, u) tickets[(seat) * UNITS + (u)]
#define place_in(seat, u) places[(seat) * UNITS + (u)]

byte inbox[SEATS];
byte taken[SEATS];
byte merged = 0;
byte later = 0;
byte inherited[SEATS];

bool is_published[SEATS];
bool leaves[SEATS];
bool has_left[SEATS];

/* Numbers, in the scenario that looks at the order. */
bool is_ordered = false;
byte number[UNITS];         /* 0: it has none yet. */
byte next_number[SEATS];
byte left_number = 0;

byte fires_left = 0;

/* What an observer knows. */
byte is_free = 0;           /* A bit for each record. */
byte has_closure = 0;
byte given_away = 0;
byte adopted = 0;
byte asleep = 0;

#define is_taken(u) (is_in(taken[0], u) || is_in(taken[1], u) || is_in(taken[2], u) || is_in(inherited[0], u) || \
                     is_in(inherited[1], u) || is_in(inherited[2], u))
#define is_pushed(u) (is_in(inbox[0], u) || is_in(inbox[1], u) || is_in(inbox[2], u) || is_in(merged, u) || \
                      is_in(later, u) || is_taken(u))

/* Every atomic sequence below touches what others can see once, like one instruction of the code. The observer's
 * variables do not count, nor does what is only written by who has the record linked, and read by who drains it. A loop
 * around a compare-and-swap is the step that succeeds. */

/* --- How what concerns a worker gets to it: crew.cpp and hot_paths.hpp. */

/* call_somebody(), as far as it matters here. */
inline call_somebody() {
    atomic {
        if
        :: is_published[0] -> is_published[0] = false
        :: !is_published[0] && is_published[1] -> is_published[1] = false
        :: !is_published[0] && !is_published[1] -> is_published[2] = false
        fi
    }
}

/* inbox::push(), onto the merge queue, or onto that for later. */
inline push_to(queue, u) {
    atomic { assert(!is_pushed(u) && (word[u] & LINKED)); queue = joined(queue, (u) + 1) }
}

/* send_to_all(). */
inline send_to_all(u) {
    atomic {
        given_away++;
#ifndef M_OWNER_KEPT
        owner[u] = NOBODY
#endif
    };
    push_to(merged, u)  /* [retire: merge] */
}

/* send(). The owner does not change while the record is linked by us. */
inline send(u, rings) {
    atomic {
        assert(owner[u] != NOBODY && !is_pushed(u) && (word[u] & LINKED));
        o = owner[u];
        is_won = inbox[o] != CLOSED;  /* [retire: send] */
        if
        :: is_won -> inbox[o] = joined(inbox[o], (u) + 1)
        :: else -> skip
        fi
    };
    if
    :: is_won ->
       /* ring_for(). */
       atomic { is_published[o] = is_published[o] && !rings; o = 0; is_won = false }
    :: else ->
       o = 0;
#ifndef M_CLOSED_DROPS
#ifdef M_SENDER_LOOKS_FIRST
       call_somebody();
       send_to_all(u)
#else
       send_to_all(u);
#ifndef M_SENDER_SILENT
       call_somebody()  /* [retire: call] */
#endif
#endif
#endif
    fi
}

/* --- Other threads. */

/* arm(). */
proctype armer(byte left) {
    byte u, o;
    bool is_won;
    do
    :: left == 0 -> break
    :: else ->
       left--;
end_of_records:
       atomic {
           is_free != 0 ->
           u = (is_free & bit(0) -> 0 : 1);
           is_free = is_free & ~bit(u);
           assert(!(word[u] & (STATE | LINKED | LOCKED)) && !is_pushed(u) && mark[u] == 0);
           has_closure = has_closure | bit(u);
           deadline[u] = LATE;
           /* choose_worker(). */
           owner[u] = (inbox[0] == CLOSED -> 1 : 0)  /* [retire: choose] */
       };
       word[u] = with_state(word[u], ARMED) | LINKED;
       send(u, true);
       u = 0
    od
}

/* cancel(), end_cancelled(). */
proctype canceller(byte u; byte life) {
    byte o;
    bool is_won, pushes;
    atomic {
        if
        :: life_of(word[u]) == life && state_of(word[u]) == ARMED ->
           word[u] = (with_state(word[u], ENDING) & ~MOVED) + ONE_LIFE;
           assert(has_closure & bit(u));
           has_closure = has_closure & ~bit(u)
        :: life_of(word[u]) > life -> goto done
        fi
    };
    atomic {
#ifdef M_PUSHES_LINKED
        pushes = !(word[u] & LOCKED);
#else
        pushes = !(word[u] & (LINKED | LOCKED));
#endif
        word[u] = with_state(word[u], VACANT) | (pushes -> LINKED : 0)
    };
    if
    :: pushes -> send(u, false)      /* It is no reason to wake anybody. */
    :: else -> skip
    fi;
done:
    skip
}

/* postpone_from_elsewhere(), to an earlier deadline. */
proctype postponer(byte u; byte life) {
    byte o;
    bool is_won, pushes, is_earlier, is_pending;
    atomic {
        if
        :: life_of(word[u]) == life && state_of(word[u]) == ARMED && !(word[u] & LOCKED) -> word[u] = word[u] | LOCKED
        :: life_of(word[u]) > life -> goto done
        fi
    };
    atomic { assert(word[u] & LOCKED); is_earlier = deadline[u] > EARLY; deadline[u] = EARLY };
    atomic {
        is_pending = life_of(word[u]) == life && state_of(word[u]) == ARMED;
        pushes = ((is_pending && is_earlier) || state_of(word[u]) == VACANT) && !(word[u] & LINKED);
        word[u] = (word[u] & ~LOCKED) | (is_pending -> MOVED : 0) | (pushes -> LINKED : 0);
        is_pending = false
    };
    if
    :: pushes -> send(u, true)
    :: else -> skip
    fi;
done:
    skip
}

/* --- A worker. */

/* free_callback(): to whoever arms the next timer. */
inline free_callback(u) {
    atomic {
        assert(!(is_free & bit(u)) && !(has_closure & bit(u)) && !is_pushed(u) && owner[u] == me);
        assert(!(word[u] & (STATE | LINKED | LOCKED)));
        assert(mark[u] == 0 || mark[u] == ticket_in(me, u));      /* Its ticket is left behind here. */
        mark[u] = 0;
        number[u] = 0;
        is_free = is_free | bit(u)
    }
}

/* take_number(), for what has none. Record 0 is armed before record 1. */
inline number_it(u) {
    if
    :: is_ordered && number[u] == 0 ->
       number[u] = next_number[me];  /* [retire: number] */
       next_number[me]++;
       assert(u == 0 || owner[0] != me || number[0] == 0 || number[0] < number[1])
    :: else -> skip
    fi
}

/* What others leave has lower numbers than what is armed after that. */
inline look_at_left_number() {
    atomic { next_number[me] = (left_number > next_number[me] -> left_number : next_number[me]) }
}

/* obey_one(), adopt(), accept(): of what was taken. */
inline obey_one(queue, u) {
#ifdef M_OWNER_LATE
    atomic { word[u] = word[u] & ~LINKED; value = word[u] };
#endif
    atomic {
        queue = rest_of(queue);
        if
        :: owner[u] != me ->
           owner[u] = me;  /* [retire: adopt] */
           adopted++;
#ifndef M_MARK_KEPT
           mark[u] = 0
#endif
        :: else -> skip
        fi
    };
#ifndef M_OWNER_LATE
    atomic { word[u] = word[u] & ~LINKED; value = word[u] };  /* [retire: unlink] */
#endif
    if
    :: state_of(value) == ARMED ->
       word[u] = word[u] & ~MOVED;
       atomic {
           number_it(u);
           if
           :: mark[u] == 0 || deadline[u] < place_in(me, u) ->
              stamps[u]++;
              mark[u] = stamps[u];
              ticket_in(me, u) = mark[u];
              place_in(me, u) = deadline[u]
           :: else -> skip
           fi
       }
#ifdef M_DRAIN_FREES_LOCKED
    :: state_of(value) == VACANT -> free_callback(u)
#else
    :: state_of(value) == VACANT && !(value & LOCKED) -> free_callback(u)
#endif
    :: else -> skip
    fi;
    atomic { u = 0; value = 0 }
}

/* units::holds(). */
#define holds(u) (ticket_in(me, u) != 0 && ticket_in(me, u) == mark[u] && owner[u] == me)

/* fire_one(), run_callback(), end_run(). */
inline fire_one(u) {
    atomic {
        value = word[u];
        if
        :: state_of(value) != ARMED -> mark[u] = 0; ticket_in(me, u) = 0
        :: state_of(value) == ARMED && (value & LOCKED) -> skip
        :: state_of(value) == ARMED && !(value & LOCKED) && (value & MOVED) -> word[u] = value & ~MOVED
        :: state_of(value) == ARMED && !(value & (LOCKED | MOVED)) ->
           word[u] = with_state(value, RUNNING);
           assert(owner[u] == me && (has_closure & bit(u)) && mark[u] == ticket_in(me, u));
           has_closure = has_closure & ~bit(u);
           fires_left--;
           mark[u] = 0;
           ticket_in(me, u) = 0
        fi
    };
    if
    :: state_of(value) == ARMED && !(value & LOCKED) && (value & MOVED) ->
       atomic { place_in(me, u) = deadline[u] }      /* The ticket finds out, and moves. */
    :: state_of(value) == ARMED && !(value & (LOCKED | MOVED)) ->
       atomic { value = word[u] & LINKED; word[u] = (life_of(word[u]) + 1) * ONE_LIFE + value };
       if
       :: value & LINKED -> skip
       :: else -> free_callback(u)
       fi
    :: else -> skip
    fi;
    atomic { u = 0; value = 0 }
}

/* give_away(). */
inline give_away(u, queue) {
    atomic {
#ifdef M_COUNTS_TWICE
        given_away++;
#else
        given_away = given_away + (owner[u] == me);  /* [retire: give away] */
#endif
        owner[u] = NOBODY
    };
    push_to(queue, u)
}

/* give_away_timer(). */
inline give_away_timer(u) {
    value = word[u];
    do
#ifdef M_POURS_VACANT
    :: value & LINKED -> break
#elif defined(M_POURS_LINKED)
    :: state_of(value) != ARMED -> break
#else
    :: state_of(value) != ARMED || (value & LINKED) -> break
#endif
    :: else ->
       if
       :: owner[u] != me -> break
       :: else -> skip
       fi;
       atomic {
           if
           :: word[u] == value -> word[u] = value | LINKED; is_won = true; break  /* [retire: link] */
           :: else -> value = word[u]
           fi
       }
    od;
    if
    :: is_won ->
       is_won = false;
#ifdef M_POURS_OTHERS
       give_away(u, later)
#else
       if
       :: owner[u] == me -> give_away(u, later)
       :: owner[u] == me -> give_away(u, merged)     /* It is due soon. */
       :: else -> send(u, true)  /* [retire: not ours any more] */
       fi
#endif
    :: else -> skip
    fi;
    value = 0
}

proctype worker(byte me; bool is_parked) {
    byte u, o;
    short value;
    bool is_won;

    if
    :: is_parked -> is_parked = false; goto end_asleep
    :: else -> skip
    fi;

turn:
    if
    :: leaves[me] -> goto retire
    :: else -> skip
    fi;

    /* obey(): a turn does a bounded amount of work, so what was taken may still be there in the next one. */
    if
    :: taken[me] != 0 ->
       u = first_of(taken[me]);
       obey_one(taken[me], u);
       goto turn
    :: inherited[me] != 0 ->
       /* adopt_some(). */
       u = first_of(inherited[me]);
       obey_one(inherited[me], u);
       goto turn
    :: else ->
       /* take_commands(). */
#ifdef M_MERGED_TAKEN_FIRST
       atomic { taken[me] = merged; merged = 0 };
       atomic { taken[me] = joined(taken[me], inbox[me]); inbox[me] = 0 };
#else
       atomic { taken[me] = inbox[me]; inbox[me] = 0 };  /* [retire: take inbox] */
#ifdef M_LEFT_NUMBER_READ_FIRST
       look_at_left_number();
#endif
#ifdef M_MERGED_OBEYED_LAST
       atomic { taken[me] = joined(taken[me], merged); merged = 0 };
#else
       atomic { taken[me] = joined(merged, taken[me]); merged = 0 };  /* [retire: take merged] */
#endif
#endif
#ifndef M_LEFT_NUMBER_READ_FIRST
       look_at_left_number();  /* [retire: look at left number] */
#endif
       atomic { inherited[me] = later; later = 0 };  /* [retire: take later] */
       if
       :: taken[me] != 0 || inherited[me] != 0 -> goto turn
       :: else -> skip
       fi
    fi;

    /* fire_due(). */
    if
    :: atomic { fires_left > 0 && (holds(0) || holds(1)) -> u = (holds(0) -> 0 : 1) };
       fire_one(u);
       goto turn
    :: else -> skip
    fi;

    /* begin_park(). */
    is_published[me] = true;
    is_won = leaves[me];
#ifndef M_INBOX_UNSEEN
    if
    :: !is_won -> is_won = inbox[me] != 0
    :: else -> skip
    fi;
#endif
#ifndef M_MERGED_UNSEEN
    if
    :: !is_won -> is_won = merged != 0  /* [retire: look again] */
    :: else -> skip
    fi;
#endif
#ifndef M_LATER_UNSEEN
    if
    :: !is_won -> is_won = later != 0
    :: else -> skip
    fi;
#endif
    if
    :: is_won -> skip
    :: atomic { else -> asleep = asleep | bit(me) };
end_asleep:
       atomic { !is_published[me] || (fires_left > 0 && (holds(0) || holds(1))) -> asleep = asleep & ~bit(me) }
    fi;
    /* end_park(). */
    atomic { is_published[me] = false; is_won = false };
    goto turn;

retire:
#ifndef M_ARMS_UNNUMBERED
    /* number_chain(), of what was taken before. */
    atomic {
        if
        :: taken[me] == 3 -> number_it(0); number_it(1)
        :: taken[me] == 4 -> number_it(1); number_it(0)
        :: taken[me] == 1 -> number_it(0)
        :: taken[me] == 2 -> number_it(1)
        :: else -> skip
        fi
    };
#endif
    /* inbox::close(). */
    do
    :: true ->
       u = inbox[me];
#ifndef M_LEFT_NUMBER_UNKNOWN
       /* raise_left_number(). */
       atomic {
#ifdef M_LEFT_NUMBER_LOW
           value = next_number[me];
#else
           value = next_number[me] + (u == 0 -> 0 : (u < 3 -> 1 : 2));  /* [retire: announce number] */
#endif
           left_number = (is_ordered && value > left_number -> value : left_number);
           value = 0
       };
#endif
#ifdef M_CLOSE_SPLIT
       taken[me] = joined(taken[me], inbox[me]);
       inbox[me] = CLOSED;
       break
#else
       atomic {
           if
           :: inbox[me] == u -> taken[me] = joined(taken[me], u); inbox[me] = CLOSED; break  /* [retire: close] */
           :: else -> skip
           fi
       }
#endif
    od;
    u = 0;
#ifndef M_LEFTOVERS_KEPT
    /* give_away_chain(). */
    do
    :: taken[me] == 0 -> break
    :: else ->
       atomic {
           u = first_of(taken[me]);
           taken[me] = rest_of(taken[me]);
#ifndef M_ARMS_UNNUMBERED
           number_it(u)
#endif
       };
       give_away(u, merged)  /* [retire: leave commands] */
    od;
#endif
#ifndef M_LATER_KEPT
    do
    :: inherited[me] == 0 -> break
    :: else ->
       atomic { u = first_of(inherited[me]); inherited[me] = rest_of(inherited[me]) };
       give_away(u, later)  /* [retire: leave later] */
    od;
#endif
    u = 0;
    do
    :: u == UNITS -> u = 0; break
    :: else -> give_away_timer(u); u++
    od;
    atomic { ticket_in(me, 0) = 0; ticket_in(me, 1) = 0 };
#ifndef M_NO_HEIR
    call_somebody();  /* [retire: call heir] */
#endif
    has_left[me] = true
}

/* add_worker(), is_seat_clean(): somebody new for a seat. */
proctype adder(byte seat) {
    byte u;
    short value;
    (has_left[seat]);
#ifndef M_SEAT_UNSCANNED
    do
    :: u == UNITS -> break
    :: else ->
       value = word[u];
#ifdef M_SCAN_LINKED
       value = value & ~LINKED;
#endif
#ifdef M_SCAN_LOCKED
       value = value & ~LOCKED;
#endif
#ifdef M_SCAN_ENDING
       value = (state_of(value) == ENDING -> with_state(value, ARMED) : value);
#endif
       if
       /* [retire: scan] */
       :: owner[u] == seat && ((value & (LINKED | LOCKED)) || state_of(value) == ENDING) -> goto done
       :: else -> u++
       fi
    od;
#endif
    /* [retire: open] */
    atomic { has_left[seat] = false; leaves[seat] = false; inbox[seat] = 0; run worker(seat, false) };
done:
    skip
}

/* tell_to_leave(). */
proctype sender_away(byte who) {
    leaves[who] = true;
    is_published[who] = false
}

/* --- What must be true at rest. */

active proctype observer() {
    byte k, s, valid;
end:
    timeout ->
    d_step {
        s = 0;
        do
        :: s < seats ->
           assert(has_left[s] == ((asleep & bit(s)) == 0));
           assert(!has_left[s] || inbox[s] == CLOSED);
           assert(taken[s] == 0 && inherited[s] == 0);
           s++
        :: else -> break
        od;
        assert(merged == 0 && later == 0);
        assert(given_away == adopted);
        if
        :: is_ordered ->
           assert(state_of(word[0]) == ARMED && state_of(word[1]) == ARMED && owner[0] == owner[1]);
           assert(number[0] != 0 && number[1] != 0);
           assert(number[0] < number[1])
        :: else -> skip
        fi;
        k = 0;
        do
        :: k < UNITS ->
           assert(!(word[k] & LOCKED) && state_of(word[k]) != RUNNING && state_of(word[k]) != ENDING);
           assert(((has_closure & bit(k)) != 0) == (state_of(word[k]) == ARMED));
           valid = 0;
           s = 0;
           do
           :: s < seats ->
              if
              :: mark[k] != 0 && ticket_in(s, k) == mark[k] ->
                 valid++;
                 assert(owner[k] == s && !has_left[s])
              :: else -> skip
              fi;
              s++
           :: else -> break
           od;
           if
           :: state_of(word[k]) == ARMED ->
              assert(valid == 1 && !(word[k] & LINKED) && !is_pushed(k));
              assert(place_in(owner[k], k) <= deadline[k])
           :: is_free & bit(k) -> assert(!(word[k] & LINKED) && !is_pushed(k))
           :: owner[k] == NOBODY -> assert(word[k] == 0)      /* It does not take part. */
           :: else -> assert((word[k] & LINKED) && !has_left[owner[k]] && is_in(inbox[owner[k]], k))
           fi;
           k++
        :: else -> break
        od
    }
}

/* A record that is armed and has its ticket. */
inline arm_at(seat, u) {
    word[u] = ARMED;
    owner[u] = seat;
    deadline[u] = LATE;
    stamps[u] = 1;
    mark[u] = 1;
    ticket_in(seat, u) = 1;
    place_in(seat, u) = LATE;
    is_free = is_free & ~bit(u);
    has_closure = has_closure | bit(u)
}

init {
    atomic {
        byte k;
        owner[0] = NOBODY;
        owner[1] = NOBODY;
        is_free = 3;
        if
        :: fires_left = 0
        :: fires_left = 1
        fi;
        if
        :: /* One leaves, and two can take over. */
           seats = 3;
           arm_at(0, 0);
           run postponer(0, 0)
        :: /* One thread arms two timers for a worker that leaves. */
           is_ordered = true;
           fires_left = 0;
           if
           :: next_number[0] = 1; next_number[1] = 4
           :: next_number[0] = 4; next_number[1] = 1
           fi;
           run armer(2)
        :: /* The seat is taken by somebody new, while somebody else arms for it, and postpones that. */
           run adder(0);
           run armer(1);
           if
           :: skip
           :: run postponer(0, 0)
           fi
        :: /* The seat is taken by somebody new, while somebody else is busy with what its predecessor had. */
           arm_at(0, 0);
           run adder(0);
           if
           :: run postponer(0, 0)
           :: run canceller(0, 0)
           fi
        :: /* Somebody arms for a worker that leaves, and somebody else cancels or postpones that. */
           run armer(1);
           if
           :: run canceller(0, 0)
           :: run postponer(0, 0)
           fi
        :: /* What is armed is postponed and cancelled while its worker leaves. */
           arm_at(0, 0);
           run postponer(0, 0);
           run canceller(0, 0)
        :: /* Two leave, one is left. */
           seats = 3;
           fires_left = 0;
           arm_at(0, 0);
           arm_at(1, 1);
           run sender_away(1);
           run postponer(0, 0)
        :: /* The seat is taken by somebody new, while others are busy with what its predecessor had. */
           arm_at(0, 0);
           run adder(0);
           run postponer(0, 0);
           run canceller(0, 0)
        :: /* What is armed is postponed twice and cancelled while its worker leaves. */
           fires_left = 0;
           arm_at(0, 0);
           run postponer(0, 0);
           run postponer(0, 0);
           run canceller(0, 0)
        :: /* The record is used again. */
           arm_at(0, 0);
           is_free = 0;
           run postponer(0, 0);
           run canceller(0, 0);
           run armer(1)
        fi;
        run sender_away(0);
        k = 0;
        do
        :: k < seats ->
           is_published[k] = true;
           asleep = asleep | bit(k);
           run worker(k, true);
           k++
        :: k == 1 && is_ordered ->
           run worker(k, false);      /* It is awake, for whatever reason. */
           k++
        :: else -> break
        od;
        k = 0
    }
}
