#if DEBUG
  import Synchronization
  import Testing
  package import WormholeSystem

  extension Faults {
    /// Returns the number of system calls that a body makes.
    package static func calls(of body: () throws -> Void) rethrows -> Int {
      let counting = Plan { _, _ in .proceed }
      try $plan.withValue(counting, operation: body)
      return counting.calls
    }
  }

  extension Faults.Plan {
    /// Creates a plan in which the call of a number fails.
    package static func failing(_ number: Int, with error: Errno) -> Faults.Plan {
      Faults.Plan { _, index in index == number ? .fail(error) : .proceed }
    }

    /// Creates a plan that acts once, before the call of a number, as another process would in that
    /// moment.
    ///
    /// The change monitor makes its calls on inotify and on its wake-up counter under its lock, which
    /// the action may need, too. So the action comes before the next other call instead.
    package static func acting(
      before number: Int, _ action: @escaping @Sendable () throws -> Void
    ) -> Faults.Plan {
      let isDue = Mutex(true)
      return Faults.Plan { call, index in
        guard index >= number, call != .eventfd, !call.rawValue.hasPrefix("inotify"),
          isDue.withLock({ isDue in
            defer { isDue = false }
            return isDue
          })
        else { return .proceed }
        Faults.$plan.withValue(nil) {
          do { try action() } catch { Issue.record("before call \(number): \(error)") }
        }
        return .proceed
      }
    }
  }
#endif
