# find_package(Troupe): gives troupe::transport, troupe::framework and troupe::actors.
include(${CMAKE_CURRENT_LIST_DIR}/dependencies.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/TroupeTargets.cmake)
