import Glibc

/// How a lock is shared.
package enum LockMode: Sendable {
  case shared
  case exclusive
}

extension FileDescriptor {
  /// Takes the file's lock if it is free. The corresponding C function is `flock` with `LOCK_NB`.
  ///
  /// There is no blocking form on purpose: a stopped holder would block its caller for ever. The
  /// lock ends when the descriptor is closed, also by the kernel when the process is killed.
  ///
  /// A lock that this open file has already is exchanged for the new one, and lost when that is not
  /// free: the kernel drops it first (flock(2)).
  ///
  /// - Returns: false when another open file holds it.
  package func tryLock(_ mode: LockMode) throws(Errno) -> Bool {
    do throws(Errno) {
      let operation = mode == .exclusive ? LOCK_EX : LOCK_SH
      _ = try perform(.flock) { flock(rawValue, operation | LOCK_NB) }
      return true
    } catch {
      guard error == .wouldBlock else { throw error }
      return false
    }
  }
}
