// SPDX-License-Identifier: MIT
#include "shim/engine/atomic.hpp"
#include "shim/engine/explore.hpp"

#include <gtest/gtest.h>

#include <string>

// The memory of the engine against what the standard says: what may be seen is seen, what may not is not.

namespace chime::shim {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto acquire = std::memory_order_acquire;
constexpr auto release = std::memory_order_release;
constexpr auto acq_rel = std::memory_order_acq_rel;
constexpr auto seq_cst = std::memory_order_seq_cst;

using results = std::set<std::string>;

std::string text(int first, int second) {
    return std::to_string(first) + std::to_string(second);
}

results message_passing(std::memory_order writes, std::memory_order reads) {
    return results_of([=] {
        atomic<int> data{0};
        atomic<int> flag{0};
        int seen_flag = 0;
        int seen_data = 0;
        thread writer([&] {
            data.store(1, relaxed);
            flag.store(1, writes);
        });
        thread reader([&] {
            seen_flag = flag.load(reads);
            seen_data = data.load(relaxed);
        });
        writer.join();
        reader.join();
        return text(seen_flag, seen_data);
    });
}

TEST(memory, message_passing_needs_both_release_and_acquire) {
    EXPECT_EQ(message_passing(release, acquire), (results{"00", "01", "11"}));
    EXPECT_EQ(message_passing(relaxed, acquire), (results{"00", "01", "10", "11"}));
    EXPECT_EQ(message_passing(release, relaxed), (results{"00", "01", "10", "11"}));
    EXPECT_EQ(message_passing(seq_cst, seq_cst), (results{"00", "01", "11"}));
}

results store_buffering(std::memory_order writes, std::memory_order reads) {
    return results_of([=] {
        atomic<int> x{0};
        atomic<int> y{0};
        int first = 0;
        int second = 0;
        thread one([&] {
            x.store(1, writes);
            first = y.load(reads);
        });
        thread two([&] {
            y.store(1, writes);
            second = x.load(reads);
        });
        one.join();
        two.join();
        return text(first, second);
    });
}

TEST(memory, store_buffering_is_forbidden_only_if_stores_and_loads_are_seq_cst) {
    EXPECT_EQ(store_buffering(seq_cst, seq_cst), (results{"01", "10", "11"}));
    EXPECT_EQ(store_buffering(release, seq_cst), (results{"00", "01", "10", "11"}));
    EXPECT_EQ(store_buffering(seq_cst, acquire), (results{"00", "01", "10", "11"}));
    EXPECT_EQ(store_buffering(release, acquire), (results{"00", "01", "10", "11"}));
}

/// Against somebody who only modifies, a store that is not seq_cst may be held back all the same.
TEST(memory, store_buffering_against_modifications_is_forbidden_only_if_all_is_seq_cst_or_modifies) {
    const auto buffered = [](std::memory_order writes, std::memory_order reads) {
        return results_of([=] {
            atomic<int> x{0};
            atomic<int> y{0};
            int first = 0;
            int second = 0;
            thread one([&] {
                x.store(1, writes);
                first = y.load(reads);
            });
            thread two([&] {
                y.exchange(1, seq_cst);
                int nothing = 0;
                second = x.compare_exchange_strong(nothing, 2, seq_cst) ? 0 : 1;
            });
            one.join();
            two.join();
            return text(first, second);
        });
    };
    EXPECT_EQ(buffered(seq_cst, seq_cst), (results{"01", "10", "11"}));
    EXPECT_TRUE(buffered(relaxed, seq_cst).contains("00"));
    EXPECT_TRUE(buffered(seq_cst, acquire).contains("00"));
    const results modified = results_of([] {
        atomic<int> x{0};
        atomic<int> y{0};
        int first = 0;
        int second = 0;
        thread one([&] {
            x.store(1, relaxed);
            first = y.exchange(2, acq_rel);
        });
        thread two([&] { second = y.exchange(1, acq_rel) == 0 ? 0 : x.load(relaxed) + 1; });
        one.join();
        two.join();
        return text(first, second);
    });
    EXPECT_EQ(modified, (results{"02", "10"}));
}

TEST(memory, store_buffering_is_forbidden_by_seq_cst_fences) {
    const auto fenced = [](std::memory_order order) {
        return results_of([=] {
            atomic<int> x{0};
            atomic<int> y{0};
            int first = 0;
            int second = 0;
            thread one([&] {
                x.store(1, relaxed);
                atomic_fence(order);
                first = y.load(relaxed);
            });
            thread two([&] {
                y.store(1, relaxed);
                atomic_fence(order);
                second = x.load(relaxed);
            });
            one.join();
            two.join();
            return text(first, second);
        });
    };
    EXPECT_EQ(fenced(seq_cst), (results{"01", "10", "11"}));
    EXPECT_EQ(fenced(acq_rel), (results{"00", "01", "10", "11"}));
}

TEST(memory, fences_pass_messages) {
    const auto fenced = [](std::memory_order before, std::memory_order after) {
        return results_of([=] {
            atomic<int> data{0};
            atomic<int> flag{0};
            int seen_flag = 0;
            int seen_data = 0;
            thread writer([&] {
                data.store(1, relaxed);
                atomic_fence(before);
                flag.store(1, relaxed);
            });
            thread reader([&] {
                seen_flag = flag.load(relaxed);
                atomic_fence(after);
                seen_data = data.load(relaxed);
            });
            writer.join();
            reader.join();
            return text(seen_flag, seen_data);
        });
    };
    EXPECT_EQ(fenced(release, acquire), (results{"00", "01", "11"}));
    EXPECT_EQ(fenced(acquire, acquire), (results{"00", "01", "10", "11"}));
}

/// Two readers see two independent stores in opposite orders, or not.
bool readers_disagree(std::memory_order writes, std::memory_order reads) {
    return results_of([=] {
               atomic<int> x{0};
               atomic<int> y{0};
               int a = 0, b = 0, c = 0, d = 0;
               thread one([&] { x.store(1, writes); });
               thread two([&] { y.store(1, writes); });
               thread three([&] {
                   a = x.load(reads);
                   b = y.load(reads);
               });
               thread four([&] {
                   c = y.load(reads);
                   d = x.load(reads);
               });
               one.join();
               two.join();
               three.join();
               four.join();
               return text(a, b) + text(c, d);
           })
        .contains("1010");
}

TEST(memory, readers_of_independent_writes_may_disagree_unless_all_is_seq_cst) {
    EXPECT_TRUE(readers_disagree(release, acquire));
    EXPECT_FALSE(readers_disagree(seq_cst, seq_cst));
}

/// A message whose data is seq_cst on both sides: what the flag does not publish may still be seen too late.
results message_of_seq_cst_data(std::memory_order writes, std::memory_order reads) {
    return results_of([=] {
        atomic<int> data{0};
        atomic<int> flag{0};
        int seen_flag = 0;
        int seen_data = 0;
        thread writer([&] {
            data.store(1, seq_cst);
            flag.fetch_add(1, writes);
        });
        thread reader([&] {
            seen_flag = flag.load(reads);
            seen_data = data.load(seq_cst);
        });
        writer.join();
        reader.join();
        return text(seen_flag, seen_data);
    });
}

TEST(memory, seq_cst_steps_are_in_one_order_that_says_nothing_about_others) {
    EXPECT_EQ(message_of_seq_cst_data(relaxed, acquire), (results{"00", "01", "10", "11"}));
    EXPECT_EQ(message_of_seq_cst_data(release, relaxed), (results{"00", "01", "10", "11"}));
    EXPECT_EQ(message_of_seq_cst_data(release, acquire), (results{"00", "01", "11"}));
    EXPECT_EQ(message_of_seq_cst_data(seq_cst, seq_cst), (results{"00", "01", "11"}));
}

/// Who reads a seq_cst store with an acquire does not come behind it in the order of all seq_cst steps: the example of the
/// paper that C++20 follows, P0668.
bool is_in_order_though_an_acquire_is_between(std::memory_order between) {
    return !results_of([=] {
                atomic<int> x{0};
                atomic<int> y{0};
                int seen_y = 0;
                int seen_x = 0;
                int before = 0;
                thread one([&] {
                    x.store(1, seq_cst);
                    y.store(1, release);
                });
                thread two([&] {
                    before = y.fetch_add(1, between);
                    seen_y = y.load(relaxed);
                });
                thread three([&] {
                    y.store(3, seq_cst);
                    seen_x = x.load(seq_cst);
                });
                one.join();
                two.join();
                three.join();
                return text(before, seen_y) + text(seen_x, 0);
            }).contains("1300");
}

TEST(memory, seq_cst_steps_come_behind_what_happened_before_only_if_that_is_seq_cst_to_the_end) {
    EXPECT_FALSE(is_in_order_though_an_acquire_is_between(acq_rel));
    EXPECT_TRUE(is_in_order_though_an_acquire_is_between(seq_cst));
}

/// One passes on that it has stored, and the other one stores after that or not.
TEST(memory, a_store_comes_before_one_that_was_made_earlier_unless_it_knows_of_it) {
    const auto last_value = [](std::memory_order writes, std::memory_order reads) {
        return results_of([=] {
            atomic<int> x{0};
            atomic<int> flag{0};
            int seen = 0;
            thread one([&] {
                x.store(1, relaxed);
                flag.store(1, writes);
            });
            thread two([&] {
                seen = flag.load(reads);
                x.store(2, relaxed);
            });
            one.join();
            two.join();
            return text(seen, x.load(relaxed));
        });
    };
    EXPECT_EQ(last_value(release, acquire), (results{"01", "02", "12"}));
    EXPECT_TRUE(last_value(relaxed, acquire).contains("11"));
    EXPECT_TRUE(last_value(release, relaxed).contains("11"));
}

TEST(memory, one_location_is_coherent_whatever_the_order) {
    const results seen = results_of([] {
        atomic<int> x{0};
        int first = 0;
        int second = 0;
        thread writer([&] {
            x.store(1, relaxed);
            x.store(2, relaxed);
        });
        thread reader([&] {
            first = x.load(relaxed);
            second = x.load(relaxed);
        });
        writer.join();
        reader.join();
        return text(first, second);
    });
    EXPECT_EQ(seen, (results{"00", "01", "02", "11", "12", "22"}));
}

TEST(memory, what_one_reader_has_seen_and_told_another_cannot_be_unseen) {
    const results seen = results_of([] {
        atomic<int> x{0};
        atomic<int> told{-1};
        int first = 0;
        int second = 0;
        thread writer([&] { x.store(1, relaxed); });
        thread teller([&] { told.store(x.load(relaxed), release); });
        thread listener([&] {
            first = told.load(acquire);
            second = x.load(relaxed);
        });
        writer.join();
        teller.join();
        listener.join();
        return first == 1 && second == 0 ? "unseen" : "fine";
    });
    EXPECT_EQ(seen, (results{"fine"}));
}

/// A release, then a relaxed step of a third thread on the same location, then an acquire.
bool is_passed_on(bool by_modification) {
    return !results_of([=] {
                atomic<int> data{0};
                atomic<int> flag{0};
                int seen_flag = 0;
                int seen_data = 0;
                thread writer([&] {
                    data.store(1, relaxed);
                    flag.store(1, release);
                });
                thread between([&] {
                    if (by_modification) {
                        int one = 1;
                        flag.compare_exchange_strong(one, 2, relaxed);
                    } else if (flag.load(relaxed) == 1) {
                        flag.store(2, relaxed);
                    }
                });
                thread reader([&] {
                    seen_flag = flag.load(acquire);
                    seen_data = data.load(relaxed);
                });
                writer.join();
                between.join();
                reader.join();
                return text(seen_flag, seen_data);
            }).contains("20");
}

TEST(memory, a_release_sequence_goes_on_through_modifications_and_ends_with_a_store) {
    EXPECT_TRUE(is_passed_on(true));
    EXPECT_FALSE(is_passed_on(false));
}

TEST(memory, modifications_lose_nothing_and_loads_followed_by_stores_do) {
    const auto counted = [](bool by_modification) {
        return results_of([=] {
            atomic<int> count{0};
            const auto add = [&] {
                if (by_modification) {
                    count.fetch_add(1, relaxed);
                } else {
                    count.store(count.load(relaxed) + 1, relaxed);
                }
            };
            thread one(add);
            thread two(add);
            one.join();
            two.join();
            return std::to_string(count.load(relaxed));
        });
    };
    EXPECT_EQ(counted(true), (results{"2"}));
    EXPECT_EQ(counted(false), (results{"1", "2"}));
}

TEST(memory, a_compare_and_swap_that_fails_may_have_seen_an_old_value_and_one_that_succeeds_has_not) {
    const results seen = results_of([] {
        atomic<int> x{0};
        int expected = 5;
        bool did = false;
        thread writer([&] { x.store(1, relaxed); });
        thread changer([&] { did = x.compare_exchange_strong(expected, 7, relaxed); });
        writer.join();
        changer.join();
        return std::string(did ? "did " : "did not ") + std::to_string(expected);
    });
    EXPECT_EQ(seen, (results{"did not 0", "did not 1"}));
    const results taken = results_of([] {
        atomic<int> owner{0};
        int winners = 0;
        const auto take = [&] {
            int nobody = 0;
            return owner.compare_exchange_strong(nobody, 1, relaxed);
        };
        bool first = false;
        bool second = false;
        thread one([&] { first = take(); });
        thread two([&] { second = take(); });
        one.join();
        two.join();
        winners = (first ? 1 : 0) + (second ? 1 : 0);
        return std::to_string(winners);
    });
    EXPECT_EQ(taken, (results{"1"}));
}

TEST(memory, plain_data_that_is_passed_without_release_or_acquire_is_a_race) {
    const auto passed = [](std::memory_order writes, std::memory_order reads) {
        return results_of([=] {
            int data = 0;
            atomic<int> flag{0};
            int* const shared = &data;
            thread writer([&flag, shared, writes] {
                *shared = 1;
                flag.store(1, writes);
            });
            int result = 0;
            thread reader([&flag, &result, shared, reads] {
                if (flag.load(reads) == 1) result = *shared;
            });
            writer.join();
            reader.join();
            return std::to_string(result);
        });
    };
    EXPECT_EQ(passed(release, acquire), (results{"0", "1"}));
#ifdef CHIME_SHIM_SEES_PLAIN
    EXPECT_TRUE(passed(relaxed, acquire).contains("failed: a data race: it reads 4 bytes"));
    EXPECT_TRUE(passed(release, relaxed).contains("failed: a data race: it reads 4 bytes"));
#endif
}

}  // namespace
}  // namespace chime::shim
