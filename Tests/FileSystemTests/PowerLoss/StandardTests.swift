import AppGroup
import FoundationEssentials
import PropertyLists
import SystemCalls
import TestSupport
import Testing

@Suite(
  "What was written without durability is old, new or told as damaged after a power cut",
  .enabled(if: !Disk.usable.isEmpty))
struct StandardTests {
  /// A change without durability, with all that may be read after a power cut.
  struct Change: Sendable {
    let identifier: String
    var old: PropertyListValue?
    var new: PropertyListValue?
  }

  private static let changes: [Change] = [
    // First, for its new directory is put on the disk together with all that came before.
    Change(identifier: String(repeating: "long/", count: 60), old: nil, new: 2),
    Change(identifier: "replaced", old: 1, new: 2),
    Change(identifier: "new", old: nil, new: 2),
    Change(identifier: "removed", old: 1, new: nil),
    Change(identifier: "large", old: 1, new: .data(Data(repeating: 0xA5, count: 1 << 20))),
    Change(identifier: "grown", old: 1, new: .string(String(repeating: "grown", count: 2_000))),
  ]

  @Test("never garbage, while durable values stay, and every name can be written again")
  func honest() throws {
    for kind in Disk.usable {
      let disk = try Disk(kind)
      // The second time another name's fsync takes the renames to the disk, but not the content.
      for isJournalWritten in [false, true] {
        let path = try disk.makeContainer()
        try change(path, isJournalWritten)
        try disk.cutPower()
        try disk.restart()
        try check(path, isJournalWritten, "\(kind)")
      }
    }
  }

  private func change(_ path: String, _ isJournalWritten: Bool) throws {
    let container = try SharedContainer(path: path)
    try container.value("other").replace(with: "intact", durability: .durable)
    for change in Self.changes {
      guard let old = change.old else { continue }
      try container.value(change.identifier).replace(with: old, durability: .durable)
    }
    for change in Self.changes {
      let value = container.value(change.identifier)
      if let new = change.new { try value.replace(with: new) } else { try value.remove() }
    }
    guard isJournalWritten else { return }
    try container.value("anchor").replace(with: "intact", durability: .durable)
  }

  private func check(_ path: String, _ isJournalWritten: Bool, _ kind: String) throws {
    let container = try SharedContainer(path: path)
    #expect(try container.value("other").read() == "intact")
    if isJournalWritten { #expect(try container.value("anchor").read() == "intact") }
    let known = Set(Self.changes.map(\.identifier) + ["other", "anchor"])
    #expect(try known.isSuperset(of: container.valueIdentifiers()))
    var damaged = 0
    for change in Self.changes {
      let value = container.value(change.identifier)
      let comment = Comment(rawValue: "\(kind), journal \(isJournalWritten): \(change.identifier)")
      do {
        let found = try value.read()
        #expect(found == change.old || found == change.new, comment)
      } catch let error as AppGroupError {
        #expect(error.code == .damaged, comment)
        // Nothing but content that was left to chance may be damaged.
        #expect(isJournalWritten && change.new != nil, comment)
        damaged += 1
      }
      try value.replace(with: "again")
      #expect(try value.read() == "again")
    }
    print("\(kind): \(damaged) of \(Self.changes.count) came out as damaged")
  }
}
