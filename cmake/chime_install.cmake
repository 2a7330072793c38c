# SPDX-License-Identifier: MIT

# Installs the library, its public headers, the CMake package and the pkg-config file.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(chime_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/chime")

install(TARGETS chime EXPORT chime_targets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/chime" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.hpp")
install(EXPORT chime_targets FILE chime_targets.cmake NAMESPACE chime:: DESTINATION "${chime_package_dir}")

configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/chime-config.cmake.in"
    "${PROJECT_BINARY_DIR}/chime-config.cmake"
    INSTALL_DESTINATION "${chime_package_dir}"
    NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/chime-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/chime-config.cmake" "${PROJECT_BINARY_DIR}/chime-config-version.cmake"
    DESTINATION "${chime_package_dir}")

# The prefix in the pkg-config file is relative to the file, so that an installed tree may be moved; unless somebody
# has asked for places that do not lie below the prefix.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
    set(chime_pc_prefix "${CMAKE_INSTALL_PREFIX}")
    set(chime_pc_includedir "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
    set(chime_pc_libdir "${CMAKE_INSTALL_FULL_LIBDIR}")
else()
    file(RELATIVE_PATH chime_pc_to_prefix "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
    string(REGEX REPLACE "/$" "" chime_pc_to_prefix "${chime_pc_to_prefix}")
    set(chime_pc_prefix "\${pcfiledir}/${chime_pc_to_prefix}")
    set(chime_pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
    set(chime_pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
set(chime_pc_cflags "")
if(NOT BUILD_SHARED_LIBS)
    set(chime_pc_cflags " -DCHIME_STATIC")
endif()
configure_file("${CMAKE_CURRENT_LIST_DIR}/chime.pc.in" "${PROJECT_BINARY_DIR}/chime.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/chime.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
