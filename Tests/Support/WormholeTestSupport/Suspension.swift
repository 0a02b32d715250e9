import WormholeSystem

/// The ways in which a process may be suspended.
package enum Suspension: String, CaseIterable, Sendable {
  /// SIGSTOP.
  case signal
  /// The freezer of a control group of the second version: `systemctl freeze`, a paused container.
  case controlGroup
  /// The freezer of the first version.
  case firstControlGroup

  /// Those that this user may use on this machine.
  package static let available = allCases.filter { $0 == .signal || $0.top != nil }

  /// The group at the top of the hierarchy, if this user may make groups there.
  fileprivate var top: String? {
    let tops =
      self == .controlGroup
      ? ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] : ["/sys/fs/cgroup/freezer"]
    return tops.first { top in
      let group = "\(top)/wormhole-test-\(Program.processID)-\(rawValue)"
      // Otherwise this way is left out.
      guard (try? makeDirectory(group, at: Directory.current)) != nil else { return false }
      defer { try? removeDirectory(group, at: Directory.current) }
      // The top of a hierarchy of the first version has no such file.
      return (try? fileStatus("\(group)/\(file)")) != nil
    }
  }

  fileprivate var file: String { self == .controlGroup ? "cgroup.freeze" : "freezer.state" }
  fileprivate var words: (freeze: String, thaw: String) {
    self == .controlGroup ? ("1", "0") : ("FROZEN", "THAWED")
  }
}

/// A suspended process, until it is continued or this is released.
package final class Suspended {
  private let process: Participant
  private let way: Suspension
  private let top: String
  private let group: String
  private var isOver = false

  package init(_ process: Participant, by way: Suspension) throws {
    self.process = process
    self.way = way
    top = way.top ?? ""
    group = "\(top)/wormhole-test-\(process.processID)"
    if way == .signal {
      try process.send(.stop)
    } else {
      try makeDirectory(group, at: Directory.current)
      try Self.write("\(process.processID)", to: "\(group)/cgroup.procs")
      try Self.write(way.words.freeze, to: "\(group)/\(way.file)")
    }
    try process.waitUntilStopped()
  }

  deinit {
    do { try resume() } catch { print("\(group) remains: \(error)") }
  }

  package func resume() throws {
    guard !isOver else { return }
    isOver = true
    if way == .signal { return try process.send(.continue) }
    try Self.write(way.words.thaw, to: "\(group)/\(way.file)")
    // Otherwise it has ended.
    try? Self.write("\(process.processID)", to: "\(top)/cgroup.procs")
    try eventually("\(group) is empty") {
      (try? removeDirectory(group, at: Directory.current)) != nil
    }
  }

  private static func write(_ text: String, to path: String) throws {
    try FileDescriptor.open(path, .writeOnly).writeAll(Array(text.utf8))
  }
}
