# SPDX-License-Identifier: MIT

# chime_inject_faults(<program>): what the library in it asks of the system goes through injection.cpp.
set(chime_wrapped mmap mprotect munmap eventfd timerfd_create epoll_create1 epoll_ctl read write syscall
    _ZN5chime2v06detail10take_frameEm
    _ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE)
list(TRANSFORM chime_wrapped PREPEND "LINKER:--wrap=")

function(chime_inject_faults name)
    target_sources(${name} PRIVATE "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/injection.cpp")
    target_link_options(${name} PRIVATE ${chime_wrapped})
    # The thread sanitizer replaces operator new and bears no other.
    if(CMAKE_CXX_FLAGS MATCHES "sanitize=thread")
        target_compile_definitions(${name} PRIVATE CHIME_FAULTS_LEAVE_NEW)
    endif()
endfunction()
