import Glibc

/// The name of a system call, for error sentences and for the faults that tests inject.
package enum SystemCall: String, Sendable, CaseIterable {
  case openat, openat2, close, read, write, lseek, fstat, fstatat, fstatfs, mkdirat, unlinkat
  case renameat, renameat2, linkat, readlinkat, flock, fsync, futimens, fchmod, getdents64
  case syncFileRange, fchown, fchownat, fchmodat, utimensat, symlinkat, mkfifoat, ftruncate
  case cloneFile, copyFileRange, fgetxattr, fsetxattr, lsetxattr, flistxattr, fremovexattr
  case inotifyInit, inotifyAddWatch, inotifyRemoveWatch, poll, eventfd
  case mmap
  case spawn, waitid, kill, pidfdOpen, pidfdSendSignal, pipe, memfdCreate
  case socket, connect, bind, send, recv, shutdown
  case threadCreate, terminalMode
}

/// How often in a row a call is repeated because a signal interrupted it, before the error is passed
/// on: every wait here is bounded, even one that a storm of signals causes.
package let retryLimit = 1_000

/// How often in a row a step is repeated because another process renamed or removed a file between
/// two of its calls. Each repetition needs another such rename, so the limit only bounds the wait.
package let renameRaceLimit = 1_000

/// Runs one system call: retries it when a signal interrupted it, and turns -1 into an error.
///
/// This is the only place that examines `errno` and EINTR. Paths are passed with `withCPath`,
/// which lends a native string's bytes; a `String` argument for a C pointer would be copied into an
/// array each time.
///
/// - Throws: `Errno`, as the call's man page lists; `.interrupted` after `retryLimit`
///   interruptions in a row, or after the first with `retryOnInterrupt` false.
@inline(__always)
package func perform<Result: SignedInteger>(
  _ call: SystemCall, retryOnInterrupt: Bool = true, _ body: () -> Result
) throws(Errno) -> Result {
  var attempts = 0
  while true {
    attempts += 1
    var failure: Int32
    #if DEBUG
      if let injected = Faults.plan?.decide(call) {
        guard injected != 0 else { return 0 }
        failure = injected
      } else {
        let result = body()
        guard result == -1 else { return result }
        failure = errno
      }
    #else
      let result = body()
      guard result == -1 else { return result }
      failure = errno
    #endif
    guard failure == EINTR, retryOnInterrupt, attempts < retryLimit else {
      throw Errno(rawValue: failure)
    }
  }
}

/// Converts the result of functions that return the error number itself, such as those of POSIX
/// threads and posix_spawn, to -1 and `errno`, as `perform` expects.
func reportedByErrno(_ failure: Int32) -> Int32 {
  guard failure != 0 else { return 0 }
  errno = failure
  return -1
}
