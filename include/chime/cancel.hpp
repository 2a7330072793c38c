// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <stop_token>
#include <utility>

namespace chime {
inline namespace v0 {

namespace detail {

/// What gives tokens, and is none: a cancel_source, a std::stop_source.
template <class Given>
concept source_of_tokens = std::convertible_to<const Given&, std::stop_source>;

}  // namespace detail

/// Tells whether cancellation was asked for. A std::stop_token under chime's name: converts from and to one, and copies
/// as cheaply. A default one is never cancelled. Any thread.
class cancel_token {
 public:
    cancel_token() noexcept = default;
    cancel_token(std::stop_token token) noexcept : token_(std::move(token)) {}

    /// A source: the compiler says what to write.
    template <detail::source_of_tokens Source>
    cancel_token(const Source&) noexcept {
        static_assert(sizeof(Source) == 0,
                      "this is a source, and what is watched is a token of it: write source.token(), or get_token() of "
                      "a std::stop_source");
    }

    [[nodiscard]] bool is_cancelled() const noexcept { return token_.stop_requested(); }

    /// False: nobody can ever cancel it, so there is nothing to watch.
    [[nodiscard]] bool can_be_cancelled() const noexcept { return token_.stop_possible(); }

    [[nodiscard]] const std::stop_token& stop_token() const noexcept { return token_; }
    operator std::stop_token() const noexcept { return token_; }

    friend bool operator==(const cancel_token&, const cancel_token&) noexcept = default;

 private:
    std::stop_token token_;
};

/// Asks for cancellation, once and for all, of everything that watches one of its tokens.
///
/// A cancelled sleeper becomes ready and is resumed by its own loop: nothing is ever resumed on the stack of whoever
/// cancels. Closures of cancelled callbacks are destroyed there, though. Any thread.
class cancel_source {
 public:
    cancel_source() = default;
    cancel_source(std::stop_source source) noexcept : source_(std::move(source)) {}

    [[nodiscard]] cancel_token token() const noexcept { return source_.get_token(); }

    /// True: this call was the first.
    bool request_cancel() noexcept { return source_.request_stop(); }

    [[nodiscard]] bool is_cancelled() const noexcept { return source_.stop_requested(); }

    [[nodiscard]] const std::stop_source& stop_source() const noexcept { return source_; }
    operator std::stop_source() const noexcept { return source_; }

    friend bool operator==(const cancel_source&, const cancel_source&) noexcept = default;

 private:
    std::stop_source source_;
};

/// A further argument of a sleep: a cancelled sleep throws std::system_error (errc::cancelled) instead of answering.
struct throw_on_cancel_t {
    explicit throw_on_cancel_t() = default;
};
inline constexpr throw_on_cancel_t throw_on_cancel{};

}  // namespace v0
}  // namespace chime
