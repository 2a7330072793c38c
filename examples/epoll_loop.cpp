// SPDX-License-Identifier: MIT

// Drives chime::timer_wheel from a plain epoll loop: three connections, each closed when it has been silent for too
// long. The peers are played by timers of the same wheel, so that the example runs by itself and ends.

#include <chime/wheel.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

constexpr auto idle_limit = 60ms;

/// What a timer stands for. Small and plain: the wheel moves it once in and once out.
struct event {
    enum class kind { peer_speaks, connection_is_idle };
    kind what;
    int connection;
};

struct connection {
    int ours = -1;
    int peers = -1;
    chime::timer_id idle;
    chime::timer_id speaks;
};

/// For epoll_wait: rounded up, so that the loop never comes back just before the deadline to find nothing due.
int milliseconds_until(std::optional<clock_type::time_point> deadline, clock_type::time_point now) {
    if (!deadline) return -1;
    if (*deadline <= now) return 0;
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(*deadline - now);
    return wait < 1h ? static_cast<int>(wait.count()) : 3'600'000;
}

class server {
 public:
    server() {
        if (epoll_ < 0) std::abort();
        for (int number = 0; number < static_cast<int>(connections_.size()); ++number) open(number);
    }
    server(const server&) = delete;
    server& operator=(const server&) = delete;
    ~server() { ::close(epoll_); }

    void run() {
        while (open_ > 0) {
            std::array<epoll_event, 8> ready{};
            const int count = ::epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()),
                                           milliseconds_until(timers_.next_deadline(), clock_type::now()));
            now_ = clock_type::now();  // Once per turn: what is armed in this turn counts from here.
            for (int i = 0; i < count; ++i) receive(static_cast<int>(ready[static_cast<std::size_t>(i)].data.u32));
            timers_.advance(
                now_, [this](event due) { act(due); }, 256);
        }
    }

 private:
    void open(int number) {
        std::array<int, 2> ends{};
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) != 0) std::abort();
        connection& opened = connections_[static_cast<std::size_t>(number)];
        opened.ours = ends[0];
        opened.peers = ends[1];
        opened.idle = timers_.arm(now_ + idle_limit, {event::kind::connection_is_idle, number});
        opened.speaks = timers_.arm(now_ + 10ms * (number + 1), {event::kind::peer_speaks, number});

        epoll_event interest{};
        interest.events = EPOLLIN;
        interest.data.u32 = static_cast<std::uint32_t>(number);
        if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, opened.ours, &interest) != 0) std::abort();
        ++open_;
    }

    void receive(int number) {
        connection& from = connections_[static_cast<std::size_t>(number)];
        std::array<char, 64> text{};
        const auto length = ::read(from.ours, text.data(), text.size());
        if (length <= 0) return;
        std::printf("%4d ms  connection %d says \"%.*s\"\n", elapsed_ms(), number, static_cast<int>(length),
                    text.data());
        timers_.postpone(from.idle, now_ + idle_limit);  // Writes a deadline into a record, nothing else.
    }

    void act(event due) {
        connection& about = connections_[static_cast<std::size_t>(due.connection)];
        if (due.what == event::kind::connection_is_idle) {
            std::printf("%4d ms  connection %d was silent for too long\n", elapsed_ms(), due.connection);
            timers_.cancel(about.speaks);  // No timer may outlive what it is about; a dead id would do no harm.
            ::close(about.ours);           // This also ends epoll's interest in it.
            ::close(about.peers);
            --open_;
        } else if (words_-- > 0) {
            if (::write(about.peers, "still here", 10) != 10) std::abort();
            about.speaks = timers_.arm(now_ + 10ms * (due.connection + 1), due);
        }
    }

    [[nodiscard]] int elapsed_ms() const { return static_cast<int>((now_ - start_) / 1ms); }

    int epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    clock_type::time_point start_ = clock_type::now();
    clock_type::time_point now_ = start_;
    chime::timer_wheel<event> timers_{{.start = start_}};
    std::array<connection, 3> connections_;
    int open_ = 0;
    int words_ = 9;
};

}  // namespace

int main() {
    server().run();
}
