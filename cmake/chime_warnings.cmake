# SPDX-License-Identifier: MIT

# chime_warnings(<target>): the warnings that our own code is kept free of.
#
# Whoever embeds chime never sees them: they are switched on only when chime is the project being built, and they
# are errors only when CHIME_WARNINGS_AS_ERRORS says so, which our presets do.
function(chime_warnings target)
    if(NOT PROJECT_IS_TOP_LEVEL)
        return()
    endif()
    target_compile_options(${target} PRIVATE
        -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wcast-align -Wcast-qual
        -Wnon-virtual-dtor -Woverloaded-virtual -Wnull-dereference -Wold-style-cast -Wextra-semi -Wundef
        -Wformat=2)
    if(CHIME_WARNINGS_AS_ERRORS)
        target_compile_options(${target} PRIVATE -Werror)
    endif()
endfunction()
