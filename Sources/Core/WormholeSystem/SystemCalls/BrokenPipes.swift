import Glibc
import WormholeShims

/// Runs a call that may write to a connection whose other end is gone; the signal SIGPIPE, which
/// would end the program, is not delivered. The corresponding C functions are `pthread_sigmask` and
/// `sigtimedwait`.
///
/// Only for code that is not ours: ours asks the kernel not to raise it. The program's own action
/// for the signal does not change. Costs four system calls.
package func withoutBrokenPipeSignal<Result>(_ body: () -> Result) -> Result {
  var pipe = sigset_t()
  var before = sigset_t()
  var pending = sigset_t()
  // These fail only for numbers that are not signals (sigsetops(3), sigpending(2)).
  sigemptyset(&pipe)
  sigaddset(&pipe, SIGPIPE)
  sigpending(&pending)
  // The program blocks the signal itself, and one is pending: it stays pending.
  let wasPending = sigismember(&pending, SIGPIPE) == 1
  _ = pthread_sigmask(SIG_BLOCK, &pipe, &before)
  let result = body()
  var noTime = timespec()
  if !wasPending { _ = sigtimedwait(&pipe, nil, &noTime) }
  _ = pthread_sigmask(SIG_SETMASK, &before, nil)
  return result
}
