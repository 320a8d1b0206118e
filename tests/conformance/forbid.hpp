// Takes system calls away from this process and its children, as a hardened system does.
#pragma once

namespace conformance {

/// From now on process_vm_readv and process_vm_writev fail with EPERM. Cannot be undone.
/// @returns false when the system does not support this.
bool forbid_process_vm();

} // namespace conformance
