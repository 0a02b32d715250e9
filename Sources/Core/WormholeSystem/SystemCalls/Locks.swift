import Glibc

package enum LockMode: Sendable {
  case shared
  case exclusive
}

extension FileDescriptor {
  /// Takes the file's lock if it is free. The corresponding C function is `flock` with `LOCK_NB`.
  ///
  /// There is deliberately no blocking form: a stopped holder would block the caller forever.
  /// The lock ends when the descriptor is closed, even by the kernel when the process is killed.
  ///
  /// A lock that this open file already holds is converted. If the new mode is not free, the old
  /// lock is lost, because the kernel releases it first (flock(2)).
  ///
  /// - Returns: False if another open file holds the lock.
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

  /// Releases the file's lock without closing the file. The corresponding C function is `flock` with
  /// `LOCK_UN`.
  package func unlock() throws(Errno) {
    _ = try perform(.flock) { flock(rawValue, LOCK_UN) }
  }
}
