#if DEBUG
  import Glibc
  import Synchronization

  /// Faults that tests inject: a plan decides the outcome of every system call of its task.
  ///
  /// Compiled into debug builds only; a release build has no such branch.
  package enum Faults {
    @TaskLocal package static var plan: Plan?

    package enum Outcome: Sendable {
      case proceed
      case fail(Errno)
      /// The call is skipped and reported as done (0). A test that skips a call must notice its
      /// absence.
      case skip
      /// The process is killed before the call, as by `kill -9`.
      case die
      /// The process is stopped before the call, as by `kill -STOP`, until it is continued.
      case stop
    }

    /// A plan that decides the outcome of each call from its name and its place among the calls.
    package final class Plan: Sendable {
      private let count = Mutex(0)
      private let rule: @Sendable (SystemCall, Int) -> Outcome

      /// - Parameter rule: Receives the call and the number of calls before it.
      package init(_ rule: @escaping @Sendable (SystemCall, Int) -> Outcome) {
        self.rule = rule
      }

      /// The number of calls that this plan has decided.
      package var calls: Int { count.withLock { $0 } }

      /// - Returns: The error number to report as the result, 0 for success, or nil to make the
      ///   call.
      func decide(_ call: SystemCall) -> Int32? {
        let index = count.withLock { count in
          defer { count += 1 }
          return count
        }
        switch rule(call, index) {
        case .proceed: return nil
        case .fail(let error): return error.rawValue
        case .skip: return 0
        case .die:
          return signalThisThread(SIGKILL)
        case .stop:
          return signalThisThread(SIGSTOP)
        }
      }

      // Sent to this very thread: a signal for the process may be taken by another thread, and this
      // thread would continue with its call until that thread has stopped it. `raise` fails only
      // for numbers that are not signals (raise(3)).
      private func signalThisThread(_ signal: Int32) -> Int32? {
        _ = Glibc.raise(signal)
        return nil
      }
    }
  }
#endif
