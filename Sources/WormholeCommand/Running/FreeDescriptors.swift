import SystemCalls

/// The files that a process may still open.
enum FreeDescriptors {
  /// What a command needs at once, and the dispatch library for its events: that one ends the
  /// process with SIGILL where it gets none.
  private static let needed = 12

  /// Makes sure that there are enough.
  ///
  /// - Parameter path: what is to be used, for the sentence.
  /// - Throws: `CommandError`.
  /// - Complexity: two system calls for each.
  static func require(toUse path: String) throws(CommandError) {
    var taken: [SharedDescriptor] = []
    do throws(Errno) {
      while taken.count < needed { taken.append(SharedDescriptor(try .wakeUpCounter())) }
    } catch {
      throw CommandError(
        verb: "use", object: path,
        reason: "\(error): this process may open \(taken.count) more, and needs \(needed); "
          + "raise the limit (ulimit -n 16) or close files",
        status: .inputOutput)
    }
  }
}
