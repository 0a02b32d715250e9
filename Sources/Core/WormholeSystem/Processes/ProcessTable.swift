import Glibc
import WormholeShims

/// The state of a process at one moment, from /proc. See proc_pid_stat(5).
package struct ProcessStatus: Hashable, Sendable {
  package let processID: Int32
  /// The program's name as the kernel keeps it: at most 15 bytes.
  package let program: String
  /// `T` or `t` in /proc: stopped by a signal or by a debugger. Also `D` with a stop that is pending.
  private var isStoppedBySignal: Bool
  /// `S` or `D` in /proc: waiting, or frozen.
  private let isAsleep: Bool
  /// `Z` or `X` in /proc with no thread left: the process is dead and holds nothing.
  package let isDead: Bool
  /// The process that started it; 1 if its parent has ended.
  package let parent: Int32
  /// The number of its session (setsid(2)).
  package let session: Int32
  /// Whether it belongs to a terminal's job that is not in the foreground: in the background, or
  /// stopped there (Ctrl-Z).
  package let isInBackground: Bool
  /// The time of the process's start, in clock ticks since the machine's start.
  package let startTicks: UInt64

  /// Whether this process has adopted it, or started it.
  package var isChild: Bool { parent == getpid() }

  /// The identity of the process, by which others recognize it.
  package var identity: ProcessIdentity {
    ProcessIdentity(
      processID: processID, startTicks: startTicks, namespace: ProcessIdentity.current.namespace)
  }

  /// Whether it does nothing until another process continues it: it was stopped, or a control group has
  /// frozen it.
  ///
  /// - Complexity: none for a running or stopped process; for one that sleeps it reads one file, and
  ///   another if its control group may be frozen.
  package var isStopped: Bool { isStoppedBySignal || (isAsleep && Freezer.hasFrozen(processID)) }

  /// - Returns: nil if there is no such process, or if /proc cannot be read and nothing is known.
  package static func of(_ processID: Int32) -> ProcessStatus? {
    do throws(Errno) {
      let text = try procRecord("/proc/\(processID)/stat")
      guard case (var status, let state)? = parse(text, processID: processID) else { return nil }
      if state == UInt8(ascii: "D") { status.isStoppedBySignal = try isStopPending(processID) }
      return status
    } catch {
      return nil
    }
  }

  /// Whether the kernel has no process with a number: not even one that /proc hides, or one that
  /// has ended but whose parent has not waited for it.
  package static func isMissing(_ processID: Int32) -> Bool {
    kill(processID, 0) != 0 && errno == ESRCH
  }

  /// Returns the processes that are not dead and for which a condition holds.
  ///
  /// - Returns: Empty also if the numbers in /proc belong to another namespace.
  /// - Complexity: Examines every process that /proc shows.
  package static func living(
    where condition: (Int32) -> Bool = { _ in true }
  ) throws(Errno) -> [ProcessStatus] {
    guard ProcessIdentity.isInTable else { return [] }
    return try FileDescriptor.open("/proc", [.readOnly, .directory]).entries().compactMap { entry in
      guard let id = Int32(entry.name.text), condition(id), let status = of(id), !status.isDead
      else { return nil }
      return status
    }
  }

  // A process that starts a program waits in the kernel (`D`) until its child runs the program
  // (vfork(2)). If both are stopped before that, it stays there until the child is continued: the
  // stop is pending, or its other threads are stopped already.
  private static func isStopPending(_ processID: Int32) throws(Errno) -> Bool {
    let pending = try procField("ShdPnd:", of: "/proc/\(processID)/status", radix: 16)
    if let pending, pending & 1 << (UInt64(SIGSTOP) - 1) != 0 { return true }
    let threads = try FileDescriptor.open("/proc/\(processID)/task", [.readOnly, .directory])
    for thread in try threads.entries() {
      // A thread that has ended meanwhile does not mean that the process has.
      let text = try tolerating(
        [.noSuchFile, .noSuchProcess],
        procRecord("/proc/\(processID)/task/\(thread.name.text)/stat"))
      if let text, parse(text, processID: processID)?.status.isStoppedBySignal == true {
        return true
      }
    }
    return false
  }

  // "pid (name) state ppid …": the name may contain anything, even parentheses, so the last ")"
  // counts.
  static func parse(
    _ text: [UInt8], processID: Int32
  ) -> (status: ProcessStatus, state: UInt8)? {
    guard let open = text.firstIndex(of: UInt8(ascii: "(")),
      let close = text.lastIndex(of: UInt8(ascii: ")")), open < close
    else { return nil }
    // Field 3 of the manual comes first here; the start time is field 22.
    let fields = text[(close + 1)...].split(separator: UInt8(ascii: " "), maxSplits: 20)
    guard let state = fields.first?.first, fields.count > 19,
      let parent = number(fields[1]).flatMap(Int32.init(exactly:)),
      let session = number(fields[3]).flatMap(Int32.init(exactly:)),
      let threads = number(fields[17]), let start = number(fields[19])
    else { return nil }
    // A process whose first thread ended before the others is also a `Z`, but still runs.
    let isZombie = state == UInt8(ascii: "Z") && threads <= 1
    let status = ProcessStatus(
      processID: processID, program: String(decoding: text[(open + 1)..<close], as: UTF8.self),
      isStoppedBySignal: state == UInt8(ascii: "T") || state == UInt8(ascii: "t"),
      isAsleep: state == UInt8(ascii: "S") || state == UInt8(ascii: "D"),
      isDead: isZombie || state == UInt8(ascii: "X"), parent: parent, session: session,
      isInBackground: !fields[4].elementsEqual("0".utf8) && fields[2] != fields[5],
      startTicks: start)
    return (status, state)
  }

  /// Reads a decimal number without a string: 500 idle workers read 2,000 of them a second.
  private static func number(_ digits: ArraySlice<UInt8>) -> UInt64? {
    guard !digits.isEmpty else { return nil }
    var number: UInt64 = 0
    for digit in digits {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
      let (tens, isTooLarge) = number.multipliedReportingOverflow(by: 10)
      let (sum, overflows) = tens.addingReportingOverflow(UInt64(digit - UInt8(ascii: "0")))
      guard !isTooLarge, !overflows else { return nil }
      number = sum
    }
    return number
  }
}

/// Reads a file of /proc, whose status shows no size. It never waits, whatever a container has in its place.
func procFile(_ path: String, maximumBytes: Int) throws(Errno) -> [UInt8] {
  try FileDescriptor.open(path, [.readOnly, .nonBlocking])
    .readToEnd(expectedBytes: 0, maximumBytes: maximumBytes)
}

/// Reads a file of /proc that the kernel writes as one record, and so returns in one call.
///
/// - Throws: `.fileTooLarge` if it has more than a page.
func procRecord(_ path: String) throws(Errno) -> [UInt8] {
  let file = try FileDescriptor.open(path, [.readOnly, .nonBlocking])
  var record: [UInt8] = []
  guard try file.read(atMost: 4_096, appendingTo: &record) < 4_096 else { throw .fileTooLarge }
  return record
}

/// Returns the number in a line of a file of /proc, "NAME: number"; nil if there is no such line.
package func procField(_ name: String, of path: String, radix: Int) throws(Errno) -> UInt64? {
  String(decoding: try procRecord(path), as: UTF8.self)
    .split(separator: "\n").first { $0.hasPrefix(name) }?
    .split(whereSeparator: \.isWhitespace).last.flatMap { UInt64($0, radix: radix) }
}

/// The identity of a process, for other processes to recognize it: its number, its start time, and
/// the namespace in which that number is valid.
package struct ProcessIdentity: Hashable, Sendable {
  package let processID: Int32
  package let startTicks: UInt64
  /// The namespace of process numbers, across machines and their starts: the namespace's inode
  /// (namespaces(7)) mixed with the boot id, because the first namespace of every machine has the
  /// same inode. 0 if /proc does not show it, or belongs to another namespace. A separate time
  /// namespace makes it another one: there /proc shows other start times, and the time since the
  /// machine's start differs (time_namespaces(7)).
  package let namespace: UInt64

  package init(processID: Int32, startTicks: UInt64, namespace: UInt64) {
    self.processID = processID
    self.startTicks = startTicks
    self.namespace = namespace
  }

  /// This process. The start time is read once, and again in a forked child: its number differs.
  ///
  /// - Complexity: No system call, except in a forked child, and before Linux 4.14.
  package static var current: ProcessIdentity {
    let first = Self.first
    guard let processID = forkID else { return first.identity }
    return first.identity.processID == processID ? first.identity : look(processID).identity
  }

  /// The number of this process if it may be a fork of the process that asked first; otherwise nil.
  ///
  /// - Complexity: Like `current`.
  package static var forkID: Int32? {
    UnsafePointer<UInt8>(bitPattern: page)?.pointee == 1 ? nil : getpid()
  }

  /// The address of a page that a forked child finds empty (`csys_own_page`): a number, because a
  /// pointer is not `Sendable`. The page stays for the life of the process.
  private static let page = UInt(bitPattern: csys_own_page())

  /// The process that has looked first.
  private static let first = {
    // Made before the look, so that it is never younger than what it vouches for.
    _ = page
    return look(getpid())
  }()

  /// The name of this process's program as the kernel keeps it, at most 15 bytes; empty if /proc does
  /// not show it. It is read once, together with the start time; a forked child has the same.
  package static var program: String { first.program }

  /// The id of this start of the machine (`/proc/sys/kernel/random/boot_id`, random(4)); empty if
  /// /proc does not show it.
  package static let boot: String = {
    // Some sandboxes have no such file.
    let text = try? procRecord(bootFile)
    return String(decoding: (text ?? []).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
  }()

  private static let bootFile = "/proc/sys/kernel/random/boot_id"

  /// Whether /proc shows this process under its own number, and not other processes under the
  /// numbers of this namespace, as in a sandbox with its own namespace and the machine's /proc.
  static var isInTable: Bool { first.isInTable }

  private static func look(
    _ processID: Int32
  ) -> (identity: ProcessIdentity, program: String, isInTable: Bool) {
    // Without /proc no other process can look this one up either; the term still bounds every wait.
    let text = (try? procRecord("/proc/self/stat")) ?? []
    let isInTable = text.starts(with: "\(processID) ".utf8)
    let status = ProcessStatus.parse(text, processID: processID)?.status
    let identity = ProcessIdentity(
      processID: processID, startTicks: status?.startTicks ?? 0,
      namespace: isInTable ? namespace(of: "self", boot: Array(boot.utf8)) : 0)
    return (identity, status?.program ?? "", isInTable)
  }

  /// - Returns: 0 if /proc does not show it.
  private static func namespace(of process: String, boot: [UInt8]) -> UInt64 {
    guard !boot.isEmpty,
      // Without /proc no other process can look this one up either; the term still bounds every wait.
      let numbers = try? fileStatus("/proc/\(process)/ns/pid", followingLinks: true).inode
    else { return 0 }
    // A kernel before 5.6 has only the first time namespace, and no such file.
    let clocks = try? fileStatus("/proc/\(process)/ns/time", followingLinks: true).inode
    return mix(numbers ^ ((clocks ?? firstClocks) ^ firstClocks) << 32, boot + [UInt8(ascii: "\n")])
  }

  /// Whether this process certainly differs from one that /proc shows here, possibly under another
  /// number than in its own namespace, and with another boot id than in its own container.
  ///
  /// - Complexity: three files of /proc and two looks there.
  package func differs(fromProcessHere number: Int32) -> Bool {
    let place = "/proc/\(number)"
    guard namespace != 0,
      // It may have ended, or be hidden (`hidepid`): nothing is known of it then.
      let own = try? procField("NSpid:", of: place + "/status", radix: 10),
      // It may belong to another user.
      let boot = try? procRecord(place + "/root" + Self.bootFile)
    else { return false }
    let there = Self.namespace(of: "\(number)", boot: boot.filter { $0 != UInt8(ascii: "\n") })
    return there != 0 && (own != UInt64(processID) || there != namespace)
  }

  /// The inode of the machine's first namespace for clocks (`PROC_TIME_INIT_INO`).
  private static let firstClocks: UInt64 = 0xEFFF_FFFA

  /// FNV-1a, 64 bits: the results of two machines differ, except once in 2^64 cases.
  static func mix(_ inode: UInt64, _ boot: [UInt8]) -> UInt64 {
    boot.reduce(0xCBF2_9CE4_8422_2325 ^ inode) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
  }

  /// The current state of this very process; nil if it is gone, its number was reused, or it is in
  /// a namespace that this process cannot see (`isVisible` distinguishes the last case).
  package var status: ProcessStatus? {
    guard isVisible, let status = ProcessStatus.of(processID), status.startTicks == startTicks
    else { return nil }
    return status
  }

  /// Whether the process has certainly ended. /proc may hide a process of another user (`hidepid`),
  /// and a look may fail for lack of a descriptor; the kernel still knows its number then.
  ///
  /// - Complexity: one file of /proc; if that cannot be read, one more call.
  package var hasEnded: Bool {
    guard isVisible else { return false }
    if let status = ProcessStatus.of(processID) {
      return status.isDead || status.startTicks != startTicks
    }
    return ProcessStatus.isMissing(processID)
  }

  /// Whether this process can look the other one up.
  package var isVisible: Bool { namespace != 0 && namespace == Self.current.namespace }
}

/// Returns the processes of this user that print to a file, or that have a variable in their
/// environment.
///
/// - Parameters:
///   - file: The file that standard output or standard error goes to.
///   - variable: "NAME=value", as it was when the program was started.
/// - Returns: The oldest process first; empty if /proc shows none.
/// - Complexity: Examines every process of this user.
package func processes(
  printingTo file: FileStatus, orWith variable: String
) throws(Errno) -> [ProcessIdentity] {
  let found = try ProcessStatus.living { process in
    ["1", "2"].contains { hasOpen(process, $0, file) } || has(process, variable)
  }
  return found.map(\.identity)
    .ordered { ($0.startTicks, $0.processID) < ($1.startTicks, $1.processID) }
}

private func has(_ processID: Int32, _ variable: String) -> Bool {
  // It fails if the process has ended, or belongs to another user. The kernel's limit for arguments
  // and environment together is lower (execve(2)).
  let bytes = try? procFile("/proc/\(processID)/environ", maximumBytes: 8 << 20)
  return bytes?.split(separator: 0).contains { $0.elementsEqual(variable.utf8) } == true
}

/// The holders of every `flock` at one moment, from /proc/locks (proc_locks(5)).
package struct LockTable: Sendable {
  private var locks: [(device: Substring, inode: UInt64, processID: Int32, isShared: Bool)] = []

  /// - Complexity: Reads every lock of the machine, so call it only in waits that already last.
  package static func current() throws(Errno) -> LockTable {
    // Some sandboxes have no such file: then no holder is visible.
    guard let table = try ifPresent(FileDescriptor.open("/proc/locks", .readOnly)) else {
      return LockTable(text: [])
    }
    return LockTable(text: try table.readToEnd(expectedBytes: 0, maximumBytes: 4 << 20))
  }

  init(text: [UInt8]) {
    for line in text.split(separator: UInt8(ascii: "\n")) {
      let fields = String(decoding: line, as: UTF8.self).split(separator: " ")
      // "1: FLOCK ADVISORY WRITE 708 00:13:16 0 EOF"; a waiter has "->" as its second field.
      guard fields.count >= 6, fields[1] == "FLOCK", let id = Int32(fields[4]), id > 0,
        let colon = fields[5].lastIndex(of: ":"),
        let inode = UInt64(fields[5][fields[5].index(after: colon)...])
      else { continue }
      locks.append((fields[5][..<colon], inode, id, fields[3] == "READ"))
    }
  }

  /// Returns the processes that held a lock on the file; empty if there was none, or if they are not
  /// visible: they are in another namespace, or the file system (btrfs, overlayfs) reports
  /// different devices to `stat` and for locks.
  package func holders(of file: FileStatus) -> [Int32] {
    let device = Self.name(of: file.device)
    return locks.filter { $0.inode == file.inode && $0.device == device }.map(\.processID)
  }

  /// Returns the inodes of a file system on which some process held a shared lock.
  package func shared(on device: UInt64) -> Set<UInt64> {
    let device = Self.name(of: device)
    return Set(locks.filter { $0.isShared && $0.device == device }.map(\.inode))
  }

  private static func name(of device: UInt64) -> String {
    let (major, minor) = deviceNumbers(device)
    let digits = [major, minor].map { String($0, radix: 16) }
    return digits.map { $0.utf8.count < 2 ? "0" + $0 : $0 }.joined(separator: ":")
  }
}

extension ProcessIdentity {
  /// Whether /proc shows this process alive, and that it or the process that started it has a file
  /// open or locked.
  ///
  /// Another user's process shows its locks, but not its open files.
  ///
  /// - Complexity: Looks at every file that the two have open, and reads every lock of the machine.
  package func isSeenToHave(_ file: FileStatus) throws(Errno) -> Bool {
    guard let status, !status.isDead else { return false }
    let both = [processID, status.parent]
    if both.contains(where: { hasOpen($0, file) }) { return true }
    return try LockTable.current().holders(of: file).contains { both.contains($0) }
  }
}

/// Whether a process has a file open; false if the process has ended, or belongs to another user.
func hasOpen(_ processID: Int32, _ file: FileStatus) -> Bool {
  openFiles(of: processID).contains { hasOpen(processID, $0, file) }
}

/// The descriptors of a process; empty if it has ended, or belongs to another user.
func openFiles(of processID: Int32) -> [String] {
  // It fails in these cases.
  let numbers = try? FileDescriptor.open("/proc/\(processID)/fd", [.readOnly, .directory]).entries()
  return (numbers ?? []).map(\.name.text)
}

/// Whether a process has a file open under a descriptor number; false if the process has ended, or
/// belongs to another user.
package func hasOpen(_ processID: Int32, _ number: String, _ file: FileStatus) -> Bool {
  // It also fails if the file was closed.
  let open = try? fileStatus("/proc/\(processID)/fd/\(number)", followingLinks: true)
  return open?.isSameFile(as: file) == true
}
