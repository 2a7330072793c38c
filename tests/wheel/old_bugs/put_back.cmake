# SPDX-License-Identifier: MIT

# cmake -DFROM=<include> -DTO=<folder> -P put_back.cmake
#
# Bugs of history that a wheel, or the arithmetic of time, can have. The headers know nothing of them: in a copy each is put
# back by a switch, which main.cpp throws at run time, and the test that is named for it has to notice. Those of threads are in
# tests/shim/old_bugs.cpp.

cmake_minimum_required(VERSION 3.25)

set(count 0)
set(table "")

# old_bug(<what it does> <test, as a filter> <header> <what is right> <what is wrong>): @HAS@ asks whether it is put back.
function(old_bug what test header right wrong)
    if(NOT DEFINED "text_${header}")
        file(READ "${FROM}/${header}" "text_${header}")
        set(headers ${headers} "${header}" PARENT_SCOPE)
    endif()
    math(EXPR number "${count} + 1")
    string(REPLACE "@HAS@" "::chime::old_bugs::has(${number})" wrong "${wrong}")
    string(FIND "${text_${header}}" "${right}" first)
    string(FIND "${text_${header}}" "${right}" last REVERSE)
    if(first EQUAL -1 OR NOT first EQUAL last)
        message(FATAL_ERROR "\"${what}\" cannot be put back: ${header} holds this not once:\n${right}\n"
            "Say in tests/wheel/old_bugs/put_back.cmake what it reads now.")
    endif()
    string(REPLACE "${right}" "${wrong}" text "${text_${header}}")
    set("text_${header}" "${text}" PARENT_SCOPE)
    set(count ${number} PARENT_SCOPE)
    set(table "${table}    {\"${what}\", \"${test}\"},\n" PARENT_SCOPE)
endfunction()

set(wheel chime/wheel.hpp)

old_bug("B08: when all are cancelled there is still something to wake up for"
    "wheel_cancel.when_all_are_cancelled_there_is_no_next_deadline" ${wheel}
    [[if (empty()) return std::nullopt;]] [[if (empty() && !@HAS@) return std::nullopt;]])
old_bug("B09: what comes later and is due earlier does not change the earliest deadline that is known"
    "wheel_postpone.hundred_thousand_random_postponements_agree_with_the_model" ${wheel}
    [[target.min = std::min(target.min, added.deadline);]]
    [[if (!@HAS@ || target.min == end_of_time) target.min = std::min(target.min, added.deadline);]])
old_bug("B09: what is moved to an earlier time is looked for at the later one"
    "wheel_postpone.hundred_thousand_random_postponements_agree_with_the_model" ${wheel}
    [[return (ticket | mark_mask) < target;]]
    [[return (ticket | mark_mask) < target || (@HAS@ && (ticket & gone) == 0);]])
old_bug("B14: one that is far away hides those that are near"
    "wheel_levels.a_ten_year_timer_never_hides_a_near_one_wherever_the_wheel_starts" ${wheel}
    [[const auto word = static_cast<unsigned>(std::countr_zero(occupied_words_));]]
    [[const auto word = @HAS@ ? 31U - static_cast<unsigned>(std::countl_zero(occupied_words_))
                                : static_cast<unsigned>(std::countr_zero(occupied_words_));]])
old_bug("B16: cancelled in the very tick in which it is due, it is not found where it is"
    "*cancel_at_its_tick.the_cancelled_one_never_fires_and_its_neighbours_do*" ${wheel}
    [[if (!records.holds(entry->index, entry->stamp))]] [[if (!@HAS@ && !records.holds(entry->index, entry->stamp))]])
old_bug("B17: the last deadline there is counts as none"
    "wheel_times.a_timer_for_never_waits_is_seen_and_can_be_cancelled" ${wheel}
    [[return detail::to_time_point(wheel_.next_deadline());]]
    [[if (@HAS@ && wheel_.next_deadline() == detail::end_of_time) return std::nullopt;
        return detail::to_time_point(wheel_.next_deadline());]])
old_bug("B20: a slot is used again for the next round, before this one is over"
    "wheel_levels.a_delay_of_each_levels_span_and_its_neighbours_fires_exactly_at_its_deadline" ${wheel}
    [[std::countl_zero((tick ^ current_tick_) | 1)]]
    [[std::countl_zero((@HAS@ ? tick - current_tick_ : tick ^ current_tick_) | 1)]])
old_bug("B21: a deadline in the past moves the clock back"
    "wheel_levels.past_and_far_deadlines_mixed_never_move_the_clock_back" ${wheel}
    [[return tick > current_tick_ ? slot_ahead(tick) : overdue_slot;]]
    [[return tick > current_tick_ || @HAS@ ? slot_ahead(tick) : overdue_slot;]])
old_bug("B21: a clock that runs back takes the wheel along"
    "wheel_times.advance_going_back_counts_as_the_latest_now" ${wheel}
    [[now_ = std::max(now_, detail::to_ordinal(now));]]
    [[now_ = @HAS@ ? detail::to_ordinal(now) : std::max(now_, detail::to_ordinal(now));]])
old_bug("B23: what takes longer than 32 bits of ticks counts as short"
    "wheel_levels.delays_from_a_millisecond_to_ten_years_fire_in_order_each_at_its_deadline" ${wheel}
    [[const unsigned shift = highest_bit / level_bits * level_bits;]]
    [[const unsigned shift = @HAS@ && highest_bit >= 32 ? 0 : highest_bit / level_bits * level_bits;]])
old_bug("B26: what is cancelled is held until its deadline"
    "cancelled_timers_hold_no_memory.when_a_million_are_armed_and_then_only_cancelled" ${wheel}
    [[if (credit_ < 0)]] [[if (credit_ < 0 && !@HAS@)]])
old_bug("B32: it fires in the tick of its deadline, before that has come"
    "wheel_levels.nothing_fires_one_nanosecond_before_its_deadline" ${wheel}
    [[if (entry != nullptr && entry->deadline <= now) {]]
    [[if (entry != nullptr && (entry->deadline <= now || (@HAS@ && tick_of(entry->deadline) <= tick_of(now)))) {]])
old_bug("B32: what is left of a nanosecond is cut off"
    "round_up.answers_for_whole_numbers_at_run_time_what_the_compiler_answers" chime/detail/round_up.hpp
    [[return upwards && quotient * divisor != dividend ? quotient + 1 : quotient;]]
    [[return upwards && !@HAS@ && quotient * divisor != dividend ? quotient + 1 : quotient;]])
old_bug("B33: no time means no deadline"
    "deadline_after.answers_at_run_time_what_the_compiler_answers" chime/time.hpp
    [[if (wait <= duration::zero()) return now;]] [[if (wait <= duration::zero()) return @HAS@ ? never : now;]])

foreach(header IN LISTS headers)
    string(REPLACE "#pragma once\n" "#pragma once\n#include \"old_bugs/switch.hpp\"\n" text "${text_${header}}")
    file(WRITE "${TO}/${header}" "${text}")
endforeach()
file(WRITE "${TO}/old_bugs_of_the_wheel.inc" "${table}")
