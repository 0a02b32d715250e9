import Wormhole
import WormholePropertyLists
import WormholeSystem

/// A snapshot of a directory that processes continue to use: a separate container, as the original
/// was at one moment.
///
/// 1. A pass reads everything, and records the version of each item. It costs others nothing.
/// 2. Further passes read again what has a new version, until one finds no change: then the snapshot
///    is as the container was when that pass began. They cost others nothing.
/// 3. Once a change is seen a sign is put up; if passes find changes for a second longer,
///    changes wait for a pass or two (`CopyPauseFile`). This costs three calls for each change, and
///    the time of the passes: one call for each name.
///
/// So it ends, however busy the container is, as long as all its users use this package; files that
/// other programs change all the time are read for `patience`; then the snapshot fails.
///
/// **Content.** Values, states and records of presence are written as a look finds them, so a
/// transaction is in it whole or not at all. Queues, logs and files are as they are on the disk,
/// without live processes' entries: as after a crash of all processes at that moment. An entry that
/// cannot be read is left out, as if it did not exist.
final class ContainerSnapshot {
  private let root: ContainerRoot
  private var values: ValuesCopy
  private let trees: TreeSnapshot
  private let check: () throws -> Void
  /// How long passes may find changes despite pauses.
  static let patience: Duration = .seconds(60)
  /// The largest number of passes before a pause.
  private static let passesWithoutPause = 3
  /// The sign that changes may have to wait; nil while none is up.
  private var sign: CopyPause?
  /// Whether the first pass was so long that its sign was taken down. Otherwise each change would
  /// cost three calls for all that time, and another copier could not pause.
  private var isLong = false
  /// For tests: the number of passes.
  private(set) var passes = 0
  private(set) var pauses = 0

  /// - Parameters:
  ///   - target: Where it is created; no other process knows that place yet.
  ///   - check: Called between all steps; its errors end the work.
  ///   - copied: Called for each value.
  init(
    of container: SharedContainer, to target: DirectoryTarget,
    leavesOut: @escaping (_ ownValue: String) -> Bool, check: @escaping () throws -> Void,
    copied: @escaping (_ bytes: Int) throws -> Void
  ) {
    let root = container.root
    self.root = root
    self.check = check
    values = ValuesCopy(
      container: container, target: target, leavesOut: leavesOut, check: check, copied: copied)
    trees = TreeSnapshot(of: root, to: target.root, check: check) {
      try TreeSnapshot.Item.beside(in: root, &$0) + TreeSnapshot.Item.parts(in: root, &$0)
    }
  }

  var size: (entries: Int, bytes: Int) {
    (values.count + trees.size.entries, trees.size.bytes.adding(size: values.bytes))
  }

  /// What the last pass has left out.
  var faults: NameFaults {
    var all = values.faults
    all.add(trees.faults)
    return all
  }

  /// The number of items that are copied as files.
  var items: Int { trees.count }

  private func pass() throws -> Int {
    passes += 1
    let start = realTime()
    return try values.pass { status in
      if let sign = self.sign {
        guard self.passes == 1, sign.notice + CopyPauseFile.notice < .now else { return }
        sign.end()
        (self.sign, self.isLong) = (nil, true)
      } else if status.modifiedMoment > start {
        guard self.passes > 1 || !self.isLong else { return }
        try self.putUpSign()
      }
    } + trees.pass()
  }

  /// - Throws: `WormholeError.timedOut` if there were changes all the time.
  func make() throws {
    defer { sign?.end() }
    _ = try pass()
    for _ in 0..<Self.passesWithoutPause {
      if try pass() == 0 { return }
      try putUpSign()
      if let sign, sign.notice <= .now { break }
    }
    let end = ContinuousClock.now + Self.patience
    while ContinuousClock.now < end {
      try putUpSign()
      guard let pause = sign else {
        // Nothing can be created there, or another copier is at work, whose pauses serve both.
        if try pass() == 0 { return }
        try sleep(until: .now + .milliseconds(10))
        continue
      }
      defer {
        pause.end()
        sign = nil
      }
      try sleep(until: pause.notice)
      // Changes that have gathered are read before others have to wait.
      if try pass() == 0 { return }
      pauses += 1
      let isDone = try pause.run {
        let end = ContinuousClock.now + CopyPauseFile.longest
        repeat { if try pass() == 0 { return true } } while ContinuousClock.now < end
        return false
      }
      if isDone { return }
    }
    throw WormholeError(
      .timedOut, "copy the container", path: root.path,
      reason: "files in it were changed all the time, by programs that do not wait for a copy",
      remedy: "stop them, and try again")
  }

  private func putUpSign() throws {
    guard sign == nil else { return }
    let handle = try root.handle()
    let container = handle.descriptor.rawValue
    // The caller continues without it.
    sign = try? CopyPause(in: root, at: container)
  }

  private func sleep(until moment: ContinuousClock.Instant) throws {
    while ContinuousClock.now < moment {
      try check()
      pauseThread(.milliseconds(10))
    }
  }
}

/// The values of a snapshot, the states of notifications, and the last present processes: the parts
/// whose meaning is copied.
private struct ValuesCopy {
  struct Thing {
    let kind: NameKind
    let part: ContainerPart
    let identifier: String
    /// The file that shows whether anything has changed.
    let file: String
    var seen: Seen?
    var bytes = 0

    func key(_ bytes: [UInt8] = []) -> CopiedKey {
      CopiedKey(of: part, kind: kind, name: identifier, bytes)
    }
  }

  enum Seen: Equatable {
    /// There is no file; the version of the directory, if that shows more.
    case nothing(Version?)
    case file(Version)
    /// Only a look at the value itself shows it: it may expire, or be part of a transaction.
    case marked(Version?)
  }

  let container: SharedContainer
  let target: DirectoryTarget
  let leavesOut: (String) -> Bool
  let check: () throws -> Void
  let copied: (Int) throws -> Void
  /// By the place of their part in the meanings of the container.
  var things: [Int: [FileName: Thing]] = [:]

  /// What the last pass could not read.
  private(set) var faults = NameFaults()

  var count: Int { things.values.reduce(0) { $0 + $1.values.count { $0.bytes > 0 } } }
  var bytes: Int { things.values.reduce(0) { $1.values.reduce($0) { $0 + $1.bytes } } }

  /// - Parameter met: Given the status of each value's file, before it is read.
  mutating func pass(_ met: (FileStatus) throws -> Void) throws -> Int {
    var changes = 0
    var faults = NameFaults()
    let root = container.root
    let handle = try root.handle()
    let directory = handle.descriptor.rawValue
    for (index, (kind, part)) in root.meanings.enumerated() {
      // An entry that has vanished, or can no longer be read, stays in it.
      var left = things[index] ?? [:]
      for entry in try SharedContainer.listed(kind, in: root, &faults) {
        try check()
        guard var thing = try left[entry.name] ?? found(entry.name, part, of: kind, &faults) else {
          continue
        }
        let place = root.path + "/" + thing.file
        let look = try faults.attempt("copy the container", path: place) { [thing] in
          try self.look(thing, at: directory, met)
        }
        guard let look else { continue }
        left[entry.name] = nil
        if let news = look {
          changes += 1
          thing.seen = news.seen
          if news.bytes != nil || thing.bytes > 0 { try put(news.bytes, of: &thing) }
        }
        things[index, default: [:]][entry.name] = thing
      }
      for (name, thing) in left {
        if thing.bytes > 0 {
          changes += 1
          try target.remove(thing.key())
        }
        things[index]?[name] = nil
      }
    }
    self.faults = faults
    return changes
  }

  /// - Returns: Nil for an entry without an identifier, and for a name that is left out.
  private func found(
    _ name: FileName, _ part: ContainerPart, of kind: NameKind, _ faults: inout NameFaults
  ) throws -> Thing? {
    let root = container.root
    guard let identifier = try SharedContainer.identifier(of: name, kind, in: root, &faults),
      kind != .ownValue || !leavesOut(identifier)
    else { return nil }
    let file = kind.path + "/" + name.text + "/" + (part.name ?? "")
    return Thing(kind: kind, part: part, identifier: identifier, file: file)
  }

  /// - Returns: What has changed since the last look; nil for nothing.
  private func look(
    _ thing: Thing, at directory: Int32, _ met: (FileStatus) throws -> Void
  ) throws -> (seen: Seen?, bytes: [UInt8]?)? {
    if thing.part.role == .post { return try lookAtPost(thing) }
    let status = try tolerating(
      [.noSuchFile, .notDirectory], fileStatus(thing.file, at: directory))
    if let status { try met(status) }
    if let status, !status.isMarked, thing.seen == .file(Version(status)) { return nil }
    let absent = status == nil ? try absence(thing, at: directory) : nil
    if let absent, thing.seen == absent { return nil }
    let (bytes, version) = try thing.part.meaning(
      of: thing.identifier, thing.kind, in: container)
    let seen: Seen
    if let status, !status.isMarked {
      seen = version.map { .file($0) } ?? .file(Version(status))
    } else {
      seen = absent ?? .marked(version)
    }
    return thing.seen == seen && bytes?.count ?? 0 == thing.bytes ? nil : (seen, bytes)
  }

  /// Nil if a transaction may have content in place of a missing file.
  private func absence(_ thing: Thing, at directory: Int32) throws -> Seen? {
    guard thing.kind.primitive == .value else { return .nothing(nil) }
    let place = String(thing.file.dropLast(LeaseSite.value.utf8.count + 1))
    let status = try tolerating([.noSuchFile, .notDirectory], fileStatus(place, at: directory))
    let note = place + "/" + LeaseSite.lease + "/" + LeaseSite.transaction
    guard try tolerating([.notDirectory], exists(note, at: directory)) != true else { return nil }
    return .nothing(status.map { Version($0) })
  }

  private func lookAtPost(_ thing: Thing) throws -> (seen: Seen?, bytes: [UInt8]?)? {
    let posts = try thing.part.meaning(of: thing.identifier, thing.kind, in: container).bytes
    guard (posts != nil) != (thing.bytes > 0) else { return nil }
    return (thing.seen, posts == nil ? nil : [0])
  }

  private func put(_ bytes: [UInt8]?, of thing: inout Thing) throws {
    let isNew = thing.bytes == 0
    thing.bytes = bytes?.count ?? 0
    guard let bytes else { return try target.remove(thing.key()) }
    let key = thing.key(bytes)
    if !isNew { try target.remove(key) }
    try target.put(key)
    if isNew { try copied(bytes.count) }
  }
}
