import Dispatch
import Foundation
import Wormhole
import WormholeFiles
import WormholePropertyLists

/// The file in which a program that uses the original keeps a message, beside the value in which
/// this package keeps it.
///
/// The value is the message. A program that uses the original writes, replaces and removes only the
/// archive, and knows no lock. So each operation first takes the archive's news into the value, and
/// then gives the value to the archive.
///
/// A note, one of this machine's own values, says which version of the value belongs to which
/// version of the archive. It is written before the step that it describes:
///
/// | step | note | killed after it |
/// |---|---|---|
/// | take the archive | value, archive, `takes` | the value still has that version: it is taken now |
/// | | the same, and the value was changed on that condition | equal contents are noted, others given |
/// | give, under the archive's claim | value, new archive, `replaces` | old archive: it gets the value |
/// | | the same, and the archive was replaced | nothing is left to do, but to note the first archive |
///
/// So an archive is news only if it is neither of the two in the note. Each step is made only if
/// nothing has changed since its decision: the note and the value are compared with their versions,
/// and a claim that was taken over publishes nothing. A note that gives a missing archive may
/// belong to a stopped process, so another archive is taken only under the claim. A process that
/// was stopped in the middle can change nothing later.
///
/// If both have changed since the note, the archive is the newer one, unless its time says that it
/// is older: a program without archives, such as the command, has sent a message since.
struct MessageArchive: Sendable {
  /// What an operation needs.
  enum Purpose {
    /// An unreadable archive is an error, and no other process is awaited.
    case reading
    /// An unreadable archive is overwritten.
    case changing
  }

  private struct Note: Equatable {
    /// The versions that belong together, as text; empty for something absent.
    var value = ""
    var archive = ""
    /// The archive that is replaced.
    var replaces: String?
    var takes = false
  }

  private enum Step { case nothing, note, take, give }

  /// What exists at one moment.
  private struct Snapshot: Equatable {
    let note: Note
    let noteVersion: Version?
    let value: Version?
    let archive: Version?

    var archiveText: String { archive?.text ?? "" }
    var valueText: String { value?.text ?? "" }
    var settled: Note { Note(value: valueText, archive: archiveText) }
    var isValueNoted: Bool { valueText == note.value }
    /// Whether there was no archive before, so that its removal would look the same.
    private var isFirst: Bool { archive != nil && note.replaces == "" }
    var isBeingTaken: Bool { note.takes && archiveText == note.archive }
    /// Whether the process that wrote the note may not have published its archive yet.
    var mayBeGiven: Bool { note.replaces != nil && archiveText != note.archive }

    var step: Step {
      if value == nil, archive == nil { return .nothing }
      if isBeingTaken { return .take }
      if archiveText == note.archive { return !isValueNoted ? .give : isFirst ? .note : .nothing }
      if archiveText == note.replaces { return .give }
      if isValueNoted { return .take }
      // Both have changed. A missing archive does not mean that it was removed: a backup lacks it.
      guard let archive else { return .give }
      return value.map { archive.isClearlyOlder(than: $0) } ?? false ? .give : .take
    }
  }

  private struct Outdated: Error {}

  /// Another process has access to the archive.
  private struct Busy: Error {}

  let value: PlainValue
  /// One of this machine's own values, where the archive is.
  let noteValue: PlainValue
  let directory: ContainerDirectory
  let name: String
  let access: ContainerAccess
  let report: @Sendable (any Error) -> Void

  private var path: String { directory.path + "/" + name }

  /// If others keep changing both, they also settle them.
  private static let rounds = 16

  /// Makes the value and the archive one message. Reports an error that keeps the archive from
  /// getting it.
  ///
  /// - Throws: The reason why a newer archive cannot be read.
  /// - Complexity: If nothing has changed, two looks at a status and one read of a small file.
  func settle(_ purpose: Purpose) throws {
    for _ in 0..<Self.rounds {
      let now = try look()
      switch now.step {
      case .nothing: return
      case .note: try attempt { try write(now.settled, after: now) }
      case .give: guard give(now, purpose) else { return }
      case .take: guard try take(now, purpose) else { return }
      }
    }
  }

  /// Takes other programs' archives as long as the observation lasts; the value's observers are
  /// called.
  func observe() -> ObservationToken {
    let queue = DispatchQueue(label: "wormhole.message-archive")
    return ForeignFile.observe(name, in: directory, on: queue) {
      do { try settle(.reading) } catch { report(error) }
    }
  }

  private func look() throws -> Snapshot {
    let snapshot = try noteValue.snapshot()
    // A damaged note counts as a missing one, and the next step replaces it.
    let content = try? snapshot.propertyList()
    let note = Note(
      value: content?["value"]?.stringValue ?? "", archive: content?["archive"]?.stringValue ?? "",
      replaces: content?["replaces"]?.stringValue, takes: content?["takes"]?.boolValue ?? false)
    return Snapshot(
      note: note, noteVersion: snapshot.version, value: try value.version(),
      archive: try directory.version(of: name))
  }

  private func write(_ note: Note, after last: Snapshot) throws {
    var content: PropertyListValue = [
      "value": .string(note.value), "archive": .string(note.archive), "takes": .boolean(note.takes),
    ]
    if let replaces = note.replaces { content["replaces"] = .string(replaces) }
    guard try noteValue.compareAndSet(last.noteVersion, content) else { throw Outdated() }
  }

  /// - Returns: Whether another look is needed.
  private func take(_ now: Snapshot, _ purpose: Purpose) throws -> Bool {
    var content: PropertyListValue?
    if now.archive != nil {
      do {
        let (bytes, version) = try directory.content(
          of: name, maximumBytes: SharedContainer.maximumValueBytes)
        guard version == now.archive else { return true }
        content = try KeyedArchive.content(ofBytes: bytes)
      } catch {
        guard purpose == .reading else { return give(now, purpose) }
        throw error is PropertyListError ? WormholeError.damaged(path, error) : error
      }
    }
    let hasValue = try !now.isValueNoted && now.value != nil && self.hasValue(content, now)
    if now.isBeingTaken, !now.isValueNoted, !hasValue { return give(now, purpose) }
    let step = {
      if hasValue { return try write(now.settled, after: now) }
      var note = now.settled
      note.takes = true
      if note != now.note { try write(note, after: now) }
      // If another process has changed the value meanwhile, another look finds out.
      _ = try value.compareAndSet(now.value, content)
    }
    guard now.mayBeGiven else {
      try attempt(step)
      return true
    }
    // Excludes: a process that was stopped gives its older message after this.
    do {
      try change(now, .contentIndependentMetadataOnly, .changing) { _ in try step() }
    } catch let error as WormholeError where error.code == .overtaken {
      // Another look finds what the process that took over the claim has done.
    }
    return true
  }

  /// Makes a step, unless another process has settled something since the look.
  private func attempt(_ step: () throws -> Void) throws {
    do { try step() } catch is Outdated { return }
  }

  private func hasValue(_ content: PropertyListValue?, _ now: Snapshot) throws -> Bool {
    let snapshot = try value.snapshot()
    guard snapshot.version == now.value else { return false }
    do {
      return try snapshot.propertyList() == content
    } catch {
      // A damaged value differs from everything.
      return false
    }
  }

  /// - Returns: Whether another look is needed.
  private func give(_ now: Snapshot, _ purpose: Purpose) -> Bool {
    do {
      let snapshot = try value.snapshot()
      guard snapshot.version == now.value else { return true }
      let found: PropertyListValue?
      do {
        found = try snapshot.propertyList()
      } catch {
        // A damaged value's readers report that.
        return false
      }
      guard let content = found else { return try remove(now, purpose) }
      let bytes: [UInt8]
      do {
        bytes = try KeyedArchive.bytes(of: content)
      } catch {
        // A damaged archive's readers report that.
        if !KeyedArchive.isArchive(content) { report(error) }
        return try remove(now, purpose)
      }
      try directory.make()
      try change(now, .forReplacing, purpose) { place in
        let version = try ForeignFile.make(place.path, bytes, access)
        let note = Note(
          value: now.valueText, archive: version.text, replaces: now.archiveText)
        try write(note, after: now)
      }
    } catch let error as WormholeError where error.code == .overtaken {
      // The process that took over the claim has settled it.
    } catch is Busy {
      // The process that has the claim gives it.
      return false
    } catch {
      report(error)
      return false
    }
    return true
  }

  private func remove(_ now: Snapshot, _ purpose: Purpose) throws -> Bool {
    let note = Note(value: now.valueText, archive: "", replaces: now.archiveText)
    guard now.archive != nil else {
      try attempt { try write(note, after: now) }
      return true
    }
    try change(now, .forDeleting, purpose) { place in
      try write(note, after: now)
      try FileManager.default.removeItem(at: place)
    }
    return true
  }

  private func change(
    _ now: Snapshot, _ options: WritingOptions, _ purpose: Purpose, _ body: (URL) throws -> Void
  ) throws {
    var hasAccess = false
    do {
      try attempt {
        try directory.withPath(of: name) { path in
          try FileCoordinator().coordinate(
            writingItemAt: URL(filePath: path), options: options,
            until: purpose == .reading ? .now : nil
          ) { place in
            hasAccess = true
            guard try look() == now else { throw Outdated() }
            try body(place)
          }
        }
      }
    } catch WormholeError.Code.timedOut where purpose == .reading && !hasAccess {
      throw Busy()
    }
  }
}

extension Version {
  /// Whether it was published before another one. Foreign files have times of the kernel's clock,
  /// which ticks a hundred times a second.
  fileprivate func isClearlyOlder(than other: Version) -> Bool {
    stamp.time + .milliseconds(10) < other.stamp.time
  }
}

extension Stamp {
  /// The time since 1970; a `Duration` holds any that a file can have.
  fileprivate var time: Duration { .seconds(seconds) + .nanoseconds(nanoseconds) }
}
