# Warnings for our own targets, never for what is included from outside.
add_library(troupe_warnings INTERFACE)
target_compile_options(troupe_warnings INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor
                       -Woverloaded-virtual -Wimplicit-fallthrough)
if(TROUPE_WERROR)
  target_compile_options(troupe_warnings INTERFACE -Werror)
endif()
