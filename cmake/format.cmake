# Targets `format` and `format-check` over every C++ file that git tracks.
find_program(CLANG_FORMAT clang-format)
if(CLANG_FORMAT)
  set(list_files git -C ${PROJECT_SOURCE_DIR} ls-files -z "*.cpp" "*.hpp")
  add_custom_target(format COMMAND ${list_files} | xargs -0 ${CLANG_FORMAT} -i WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  add_custom_target(format-check COMMAND ${list_files} | xargs -0 ${CLANG_FORMAT} --dry-run --Werror
                    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endif()
