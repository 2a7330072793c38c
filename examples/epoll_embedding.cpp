// SPDX-License-Identifier: MIT

// chime inside a loop that somebody else has written: a plain epoll loop with a socket of its own watches one more
// descriptor, and calls poll() when that is readable. A task at the other end of the socket speaks now and then; when it
// has been silent for too long, a timer ends it all.

#include <chime/io_context.hpp>
#include <chime/sleep.hpp>
#include <chime/spawn.hpp>
#include <chime/task.hpp>
#include <chime/timers.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace std::chrono_literals;

namespace {

constexpr auto idle_limit = 60ms;

chime::task<> speak(int socket) {
    for (const std::string_view word : {"one", "two", "three"}) {
        co_await chime::sleep_for(20ms);
        if (::send(socket, word.data(), word.size(), 0) < 0) std::abort();
    }
}

void watch(int epoll, int descriptor) {
    epoll_event interest{};
    interest.events = EPOLLIN;
    interest.data.fd = descriptor;
    if (::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &interest) != 0) std::abort();
}

void receive(int socket) {
    std::array<char, 64> text{};
    const auto length = ::recv(socket, text.data(), text.size(), 0);
    if (length > 0) std::printf("received \"%.*s\"\n", static_cast<int>(length), text.data());
}

}  // namespace

int main() {
    std::array<int, 2> sockets{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets.data()) != 0) return EXIT_FAILURE;
    const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0) return EXIT_FAILURE;
    watch(epoll, sockets[0]);

    chime::io_context ctx;
    chime::spawn_detached(ctx, speak(sockets[1]));
    bool is_open = true;
    const chime::timer_handle idle = ctx.timers().after(idle_limit, [&] {
        std::puts("silent for too long");
        is_open = false;
    });

    watch(epoll, ctx.poll_fd());
    ctx.poll();  // Once before the first wait: what was armed so far is known to the descriptor from now on.
    while (is_open) {
        std::array<epoll_event, 8> ready{};
        const int count = ::epoll_wait(epoll, ready.data(), static_cast<int>(ready.size()), -1);  // No time-out here.
        if (count < 0 && errno != EINTR) std::abort();
        for (int i = 0; i < count; ++i) {
            if (ready[static_cast<std::size_t>(i)].data.fd == sockets[0]) {
                receive(sockets[0]);
                ctx.timers().postpone(idle, idle_limit);  // Outside of chime's callbacks; the descriptor notices.
            } else {
                ctx.poll();  // Callbacks and tasks run in here, and throw out of here.
            }
        }
    }
    for (const int descriptor : {epoll, sockets[0], sockets[1]}) ::close(descriptor);
}
