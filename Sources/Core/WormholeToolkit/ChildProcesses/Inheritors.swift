import WormholeShims
package import WormholeSystem

/// Returns the processes that inherited a file when they were started (`ChildProcess.init`,
/// `inheriting`): they have it open as descriptor 10, without close-on-exec. Their own children are
/// included, unless they have closed the descriptor.
///
/// - Returns: Empty if /proc shows none; another user's processes are not shown.
/// - Complexity: Examines every process of the machine, so call it only in waits that already last.
package func inheritors(of file: FileStatus) throws(Errno) -> [ProcessStatus] {
  try ProcessStatus.living { inherits($0, file) }
}

private func inherits(_ processID: Int32, _ file: FileStatus) -> Bool {
  let number = csys_INHERITED
  guard hasOpen(processID, "\(number)", file) else { return false }
  // "flags: 02100000", in octal (proc_pid_fdinfo(5)). A process that only examines the file opened it
  // close-on-exec. It fails as `hasOpen` does.
  let flags = try? procField("flags:", of: "/proc/\(processID)/fdinfo/\(number)", radix: 8)
  return flags.map { $0 & 0o2_000_000 == 0 } ?? false
}

/// Kills the processes that inherited a file, whatever they are doing, and waits until they have
/// ended.
///
/// A killed process closes its files before its end is reported, so it changes nothing after this
/// call.
///
/// - Returns: Whether all have ended; a process that this user may not kill runs on.
/// - Throws: `Errno` if a process cannot be examined, for example for lack of descriptors.
package func endInheritors(
  of file: FileStatus, until deadline: ContinuousClock.Instant
) throws(Errno) -> Bool {
  // Each of them may have started another process between the look and its end.
  for _ in 0..<retryLimit {
    let all = try inheritors(of: file)
    if all.isEmpty { return true }
    for one in all {
      guard try end(one, of: file, until: deadline) else { return false }
    }
  }
  return false
}

private func end(
  _ process: ProcessStatus, of file: FileStatus, until deadline: ContinuousClock.Instant
) throws(Errno) -> Bool {
  do throws(Errno) {
    let handle = try FileDescriptor.process(process.processID)
    // The number may belong to another process by now; the descriptor still refers to the same one.
    guard inherits(process.processID, file) else { return true }
    try handle.sendToProcess(.kill)
    return try waitReadable([handle.rawValue], until: deadline)[0]
  } catch {
    guard error != .noSuchProcess else { return true }
    guard error != .notPermitted else { return false }
    throw error
  }
}

extension FileDescriptor {
  /// Opens a descriptor that refers to a process, not to its number. The C function is
  /// `pidfd_open`.
  static func process(_ processID: Int32) throws(Errno) -> FileDescriptor {
    FileDescriptor(owning: try perform(.pidfdOpen) { csys_pidfd_open(processID) })
  }

  /// Sends a signal to the process that the descriptor refers to. The C function is
  /// `pidfd_send_signal`.
  func sendToProcess(_ signal: Signal) throws(Errno) {
    _ = try perform(.pidfdSendSignal) { csys_pidfd_send_signal(rawValue, signal.rawValue) }
  }
}
