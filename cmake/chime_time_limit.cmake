# SPDX-License-Identifier: MIT

# A test whose time is almost up says where its threads stand (tests/support/time_limit.cpp); only then does CTest kill it.

# chime_say_where_threads_stand(<program> tests|program): each of its GoogleTest tests is limited, or the program as a whole.
function(chime_say_where_threads_stand name what)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:chime_time_limit> $<TARGET_OBJECTS:chime_limited_${what}>)
    # So that a stack can be told with names.
    target_link_options(${name} PRIVATE -rdynamic)
    target_link_libraries(${name} PRIVATE ${CMAKE_DL_LIBS})
endfunction()

# chime_limit_below(<variable> <timeout>): what a test says to itself, so that it has the time to tell.
function(chime_limit_below variable timeout)
    math(EXPR limit "${timeout} - ${timeout} / 20 - 5")
    set(${variable} "CHIME_TIME_LIMIT=${limit}" PARENT_SCOPE)
endfunction()

# chime_limit_test(<test> <timeout>): one that was added with add_test().
function(chime_limit_test name timeout)
    chime_limit_below(limit ${timeout})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} ENVIRONMENT "${limit}")
endfunction()
