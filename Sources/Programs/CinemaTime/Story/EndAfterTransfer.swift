import SystemCalls

/// A phone for the story and the tests that is killed after it has handed a file to the session.
enum EndAfterTransfer {
  static let variable = "CINEMATIME_KILLED_AFTER_TRANSFER"

  static func endHereIfWanted() {
    guard Program.environment(variable) != nil else { return }
    do throws(Errno) {
      try Program.send(.kill, to: Program.processID)
    } catch {
      preconditionFailure("a process may end itself: \(error)")
    }
  }
}
