import CSystemCalls

/// The processes that a file was handed on to when they were started (`ChildProcess.init`, `inheriting`):
/// it is their descriptor 10, and not close-on-exec. What such a process started is among them, unless it
/// has closed the descriptor.
///
/// - Returns: empty where /proc shows none; another user's are not shown.
/// - Complexity: looks at every process of the machine: only for waits that already last.
package func inheritors(of file: FileStatus) throws(Errno) -> [ProcessStatus] {
  try FileDescriptor.open("/proc", [.readOnly, .directory]).entries().compactMap { entry in
    guard let id = Int32(entry.name.text), inherits(id, file), let status = ProcessStatus.of(id),
      !status.isDead
    else { return nil }
    return status
  }
}

private func inherits(_ processID: Int32, _ file: FileStatus) -> Bool {
  do throws(Errno) {
    let number = csys_INHERITED
    let here = try fileStatus("/proc/\(processID)/fd/\(number)", followingLinks: true)
    guard here.isSameFile(as: file) else { return false }
    // "flags:	02100000", in octal (proc_pid_fdinfo(5)): a process that only looks at the file opened it
    // close-on-exec.
    let information = try FileDescriptor.open("/proc/\(processID)/fdinfo/\(number)", .readOnly)
    let text = String(
      decoding: try information.readToEnd(expectedBytes: 0, maximumBytes: 8_192), as: UTF8.self)
    let line = text.split(separator: "\n").first { $0.hasPrefix("flags:") }
    let flags = line?.split(whereSeparator: \.isWhitespace).last.flatMap { UInt64($0, radix: 8) }
    return flags.map { $0 & 0o2_000_000 == 0 } ?? false
  } catch {
    // Closed, ended meanwhile, or another user's.
    return false
  }
}

/// Ends processes that a file was handed on to, whatever they are doing, and waits until they have.
///
/// A process that is killed has closed its files before its end is told, so it changes nothing any more.
///
/// - Returns: whether all have ended; one that this user may not end goes on.
/// - Throws: `Errno` when a process cannot be looked at for want of descriptors, for example.
package func endInheritors(
  of file: FileStatus, until deadline: ContinuousClock.Instant
) throws(Errno) -> Bool {
  // Each may have started another one between the look and its end.
  for _ in 0..<interruptionLimit {
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
    // By now the number may be another's; the descriptor stays that one's.
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
  /// Stands for a process, not for its number. The corresponding C function is `pidfd_open`.
  static func process(_ processID: Int32) throws(Errno) -> FileDescriptor {
    FileDescriptor(owning: try perform(.pidfdOpen) { csys_pidfd_open(processID) })
  }

  /// Sends a signal to the process that this stands for. The C function is `pidfd_send_signal`.
  func sendToProcess(_ signal: Signal) throws(Errno) {
    _ = try perform(.pidfdSendSignal) { csys_pidfd_send_signal(rawValue, signal.rawValue) }
  }
}
