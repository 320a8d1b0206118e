# Targets `format` and `format-check` over every C++ file of ours.
find_program(CLANG_FORMAT NAMES clang-format-14 clang-format)
if(CLANG_FORMAT)
  set(list_files "find transport framework actors apps examples tests '(' -name '*.cpp' -o -name '*.hpp' ')' -print0")
  add_custom_target(format COMMAND sh -c "${list_files} | xargs -0 ${CLANG_FORMAT} -i"
                    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} VERBATIM)
  add_custom_target(format-check COMMAND sh -c "${list_files} | xargs -0 ${CLANG_FORMAT} --dry-run --Werror"
                    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} VERBATIM)
endif()
