#if DEBUG
  import Glibc
  import Synchronization

  /// What tests make the kernel do: a plan is asked before every system call of its task.
  ///
  /// Compiled into debug builds only; a release build has no such branch.
  package enum Faults {
    @TaskLocal package static var plan: Plan?

    /// What happens instead of a call.
    package enum Outcome: Sendable {
      case proceed
      case fail(Errno)
      /// The call is left out and taken for done (0): what a test leaves out must be missed by it.
      case skip
      /// The process is killed before the call, as by `kill -9`.
      case die
      /// The process is stopped before the call, as by `kill -STOP`, and goes on when continued.
      case stop
    }

    /// Decides the outcome of each call from its name and its place in the order of calls.
    package final class Plan: Sendable {
      private let count = Mutex(0)
      private let rule: @Sendable (SystemCall, Int) -> Outcome

      /// - Parameter rule: gets the call and how many calls came before it.
      package init(_ rule: @escaping @Sendable (SystemCall, Int) -> Outcome) {
        self.rule = rule
      }

      /// How many calls this plan was asked about.
      package var calls: Int { count.withLock { $0 } }

      /// - Returns: the error number that stands for the call's result, 0 for success; nil when the
      ///   call is to be made.
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

      // To this very thread: a signal for the process may be taken by another thread, and this one
      // would go on with its call until that thread has stopped it. `raise` fails only for numbers
      // that are no signals (raise(3)).
      private func signalThisThread(_ signal: Int32) -> Int32? {
        _ = Glibc.raise(signal)
        return nil
      }
    }
  }
#endif
