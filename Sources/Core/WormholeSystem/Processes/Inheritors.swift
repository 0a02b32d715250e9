import Glibc
import WormholeShims

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

/// Returns the processes that share the lock of a file, even if the process that took it has ended: a
/// shell keeps what flock(1) has locked for it.
///
/// - Returns: Empty if /proc shows none; another user's processes are not shown.
/// - Complexity: Examines every open file of this user's processes; see `inheritors`.
package func processesLocking(_ file: FileStatus) throws(Errno) -> [ProcessStatus] {
  try ProcessStatus.living { process in
    openFiles(of: process).contains { number in
      guard hasOpen(process, number, file) else { return false }
      // "lock: 1: FLOCK ADVISORY WRITE 708 00:13:16 0 EOF" (proc_pid_fdinfo(5)). It fails as `hasOpen`.
      let info = try? procRecord("/proc/\(process)/fdinfo/\(number)")
      return info.map { String(decoding: $0, as: UTF8.self).contains("FLOCK") } ?? false
    }
  }
}

/// Kills the work under a file, whatever it is doing, and waits until it has ended: the processes
/// that inherited the file, those that they have started, and those whose starters have ended
/// meanwhile.
///
/// A killed process runs on until it has ended, and one not yet killed may start another. So all
/// are killed before the first is waited for, again until none is left. A killed process closes its
/// files before its end is reported, so it changes nothing after this call.
///
/// - Returns: Whether all have ended; a process that this user may not kill runs on.
/// - Throws: `Errno` if a process cannot be examined, for example for lack of descriptors.
package func endInheritors(
  of file: FileStatus, until deadline: ContinuousClock.Instant
) throws(Errno) -> Bool {
  var starters: Set<ProcessIdentity> = []
  while true {
    let tree = try ProcessTree.current()
    let heirs = tree.all.filter { inherits($0.processID, file) }
    // The starter of the work has the file open itself, and becomes the parent of those whose
    // starters end. Only a program that runs one command at a time hands a file on; this process
    // may have other children.
    for heir in heirs where !heirs.contains(where: { $0.processID == heir.parent }) {
      if let starter = tree.process(heir.parent), starter.identity != .current,
        hasOpen(starter.processID, file)
      {
        starters.insert(starter.identity)
      }
    }
    let work = tree.work(of: heirs, and: starters).filter { $0.identity != .current }
    if work.isEmpty { return true }
    var mayKillAll = true
    for process in work {
      mayKillAll = try process.send(.kill, tolerating: [.notPermitted]) && mayKillAll
    }
    for process in work {
      guard try process.waitForEnd(until: deadline) else { return false }
    }
    guard mayKillAll, ContinuousClock.now < deadline else { return false }
  }
}

/// The living processes at one moment, and which of them started which.
package struct ProcessTree {
  package let all: [ProcessStatus]
  private let children: [Int32: [ProcessStatus]]

  /// - Complexity: Examines every process of the machine.
  package static func current() throws(Errno) -> ProcessTree {
    ProcessTree(all: try ProcessStatus.living())
  }

  private init(all: [ProcessStatus]) {
    self.all = all
    children = Dictionary(grouping: all, by: \.parent)
  }

  func process(_ number: Int32) -> ProcessStatus? { all.first { $0.processID == number } }

  /// Returns processes and those that they have started, each after its starter.
  ///
  /// - Parameter starters: Processes that do no work themselves. Those that became their children
  ///   because their own starters ended belong to the work, except for one with its own session:
  ///   that is how a daemon detaches itself (setsid(2), daemon(3)).
  package func work(
    of processes: [ProcessStatus], and starters: Set<ProcessIdentity>
  ) -> [ProcessStatus] {
    var found = processes
    for starter in all where starters.contains(starter.identity) {
      found += children[starter.processID, default: []].filter { $0.session == starter.session }
    }
    var numbers: Set<Int32> = []
    found = found.filter { numbers.insert($0.processID).inserted }
    var index = 0
    while index < found.count {
      found += children[found[index].processID, default: []]
        .filter { numbers.insert($0.processID).inserted }
      index += 1
    }
    return found
  }
}

extension ProcessStatus {
  /// Whether its number still belongs to it.
  private var isStill: Bool { Self.of(processID)?.startTicks == startTicks }

  /// Sends a signal to this very process, and not to another with its number.
  ///
  /// - Parameter errors: The errors that mean false.
  /// - Returns: True even if it has ended.
  package func send(_ signal: Signal, tolerating errors: [Errno] = []) throws(Errno) -> Bool {
    do throws(Errno) {
      let handle = try FileDescriptor.process(processID)
      if isStill { try handle.sendToProcess(signal) }
      return true
    } catch {
      if error == .noSuchProcess { return true }
      guard errors.contains(error) else { throw error }
      return false
    }
  }

  /// - Returns: False if it still runs at the deadline.
  fileprivate func waitForEnd(until deadline: ContinuousClock.Instant) throws(Errno) -> Bool {
    guard let handle = try tolerating([.noSuchProcess], SharedDescriptor(.process(processID)))
    else { return true }
    guard isStill else { return true }
    return try waitReadable([handle.descriptor.rawValue], until: deadline)[0]
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
  package func sendToProcess(_ signal: Signal) throws(Errno) {
    _ = try perform(.pidfdSendSignal) { csys_pidfd_send_signal(rawValue, signal.rawValue) }
  }
}

/// The processes that became children of this one because their starters have ended.
package enum Orphans {
  /// From now on they become children of this process instead of the machine's first one.
  package static func adopt() {
    // It fails only on Linux before 3.4, or in a sandbox; then they are not seen here.
    _ = csys_adopt_orphans()
  }

  /// Reaps those that have ended, which would otherwise stay zombies.
  ///
  /// - Parameter own: Children whose end others wait for.
  /// - Returns: Whether this process has any other child.
  package static func reap(except own: [Int32]) throws(Errno) -> Bool {
    while let ended = try tolerating([.noChild], perform(.waitid) { csys_ended_child() }) {
      // The others are reaped after it was waited for.
      guard ended != 0, !own.contains(ended) else { return true }
      _ = try tolerating([.noChild], perform(.waitid) { csys_reap(ended) })
    }
    return false
  }
}
