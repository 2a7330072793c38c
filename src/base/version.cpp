// SPDX-License-Identifier: MIT
#include <chime/version.hpp>

#define CHIME_TEXT_OF(number) #number
#define CHIME_DOTTED(major, minor, patch) CHIME_TEXT_OF(major) "." CHIME_TEXT_OF(minor) "." CHIME_TEXT_OF(patch)

namespace chime::inline v0 {

std::string_view version() noexcept {
    return CHIME_DOTTED(CHIME_VERSION_MAJOR, CHIME_VERSION_MINOR, CHIME_VERSION_PATCH);
}

}  // namespace chime::inline v0
