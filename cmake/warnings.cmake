# Warnings for our own targets, never for what is included from outside.
add_library(troupe_warnings INTERFACE)
target_compile_options(troupe_warnings INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor
                       -Woverloaded-virtual -Wimplicit-fallthrough)
# When it optimises, g++ 12 takes "text" + std::string for overlapping copies (GCC bug 105651).
target_compile_options(troupe_warnings INTERFACE $<$<CONFIG:Release>:-Wno-restrict>)
if(TROUPE_WERROR)
  target_compile_options(troupe_warnings INTERFACE -Werror)
endif()
