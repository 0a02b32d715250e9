import SystemCalls

/// The files that a process may still open.
enum FreeDescriptors {
  /// The descriptors that a command and the dispatch library need at once. The dispatch library ends the
  /// process with SIGILL if it gets none.
  private static let needed = 12

  /// Checks that there are enough.
  ///
  /// - Parameter path: the container or file, for the sentence.
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
