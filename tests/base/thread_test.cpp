// SPDX-License-Identifier: MIT
#include "base/thread.hpp"

#include <string>
#include <string_view>
#include <system_error>

#include <pthread.h>
#include <sched.h>

#include <gtest/gtest.h>

namespace {

std::string name_of_this_thread() {
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof name);
    return name;
}

unsigned first_usable_processor() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof allowed, &allowed);
    unsigned processor = 0;
    while (!CPU_ISSET(processor, &allowed)) ++processor;
    return processor;
}

}  // namespace

TEST(thread, has_at_least_one_usable_processor) {
    EXPECT_GE(chime::base::usable_processors(), 1U);
}

TEST(thread, stays_on_the_processor_it_is_pinned_to) {
    const unsigned before = chime::base::usable_processors();
    const unsigned processor = first_usable_processor();
    chime::base::thread([processor] {
        EXPECT_EQ(chime::base::pin_this_thread(processor), std::error_code{});
        EXPECT_EQ(chime::base::usable_processors(), 1U);
        EXPECT_EQ(sched_getcpu(), static_cast<int>(processor));
    }).join();
    EXPECT_EQ(chime::base::usable_processors(), before);
}

TEST(thread, counts_only_the_processors_that_it_may_use) {
    const unsigned count = chime::base::usable_processors();
    const unsigned last = chime::base::usable_processor(count - 1);
    EXPECT_EQ(chime::base::usable_processor(0), first_usable_processor());
    EXPECT_EQ(chime::base::usable_processor(count), first_usable_processor()) << "after the last comes the first";
    chime::base::thread([last] {
        ASSERT_EQ(chime::base::pin_this_thread(last), std::error_code{});
        EXPECT_EQ(chime::base::usable_processor(0), last);
        EXPECT_EQ(chime::base::usable_processor(7), last);
    }).join();
}

TEST(thread, is_not_pinned_to_a_processor_that_is_absent) {
    chime::base::thread([] {
        const unsigned before = chime::base::usable_processors();
        EXPECT_EQ(chime::base::pin_this_thread(CPU_SETSIZE - 1), std::errc::invalid_argument);
        EXPECT_EQ(chime::base::pin_this_thread(CPU_SETSIZE), std::errc::invalid_argument);
        EXPECT_EQ(chime::base::pin_this_thread(~0U), std::errc::invalid_argument);
        EXPECT_EQ(chime::base::usable_processors(), before);
    }).join();
}

TEST(thread, bears_its_name_as_far_as_the_kernel_keeps_it) {
    chime::base::thread([] {
        chime::base::name_this_thread("chime worker 0");
        EXPECT_EQ(name_of_this_thread(), "chime worker 0");
        chime::base::name_this_thread("chime worker 1234567");
        EXPECT_EQ(name_of_this_thread(), "chime worker 12");
        chime::base::name_this_thread(std::string_view("a view without a zero", 6));
        EXPECT_EQ(name_of_this_thread(), "a view");
        chime::base::name_this_thread("");
        EXPECT_EQ(name_of_this_thread(), "");
    }).join();
}
