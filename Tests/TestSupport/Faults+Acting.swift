#if DEBUG
  package import SystemCalls
  import Testing

  extension Faults.Plan {
    /// Creates a plan that acts before one call, as another process would in that moment.
    ///
    /// It does not act before a call on inotify or on a wake-up counter: the change monitor makes
    /// these under its lock, which the action may need, too.
    package static func acting(
      before place: Int, _ action: @escaping @Sendable () throws -> Void
    ) -> Faults.Plan {
      Faults.Plan { call, index in
        guard index == place, call != .eventfd, !call.rawValue.hasPrefix("inotify") else {
          return .proceed
        }
        Faults.$plan.withValue(nil) {
          do { try action() } catch { Issue.record("before call \(place): \(error)") }
        }
        return .proceed
      }
    }
  }
#endif
