import AppGroup
import FoundationEssentials
import Synchronization
import SystemCalls
import TestSupport
import Testing

@testable import FileCoordination

/// Items of one test's own, and the processes that coordinate them.
///
/// The directory with the items holds nothing else when all accesses have ended, and nothing is in
/// the container beside it but what presenters need.
struct RaceScene {
  let directory: TemporaryDirectory
  /// Where the items are.
  let items: String

  init(under parent: String? = nil) throws {
    directory = try TemporaryDirectory(under: parent)
    _ = try directory.container()
    items = directory.path + "/items"
    try makeDirectory(items)
  }

  func participant() throws -> Participant { try Participant(directory.path) }

  func path(_ name: String) -> String { items + "/" + name }
  func url(_ name: String) -> URL { URL(filePath: path(name)) }

  func put(_ text: String, _ name: String) throws { try ItemText.write(text, to: path(name)) }
  func text(_ name: String) throws -> String? { try ItemText.read(path(name)) }
  func makeFolder(_ name: String) throws { try makeDirectory(path(name)) }

  /// What is in the directory of the items, or in one of them.
  func names(in name: String = ".") throws -> [String] { try Self.names(path(name)) }

  static func names(_ path: String) throws -> [String] {
    try FileDescriptor.open(path, [.readOnly, .directory]).entries().map(\.name.text).sorted()
  }

  /// Nothing was left behind: neither by those who ended, nor by those who were killed or overtaken.
  func expectOnly(
    _ names: [String], in name: String = ".", _ comment: String = "",
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let found = try self.names(in: name)
    #expect(
      found == names.sorted(), "\(comment) \(directory.listing)", sourceLocation: sourceLocation)
  }

  // MARK: Gates

  /// What is in an item's site now; nothing when there is none.
  func claims(_ name: String) throws -> [String] {
    let location = try ItemLocation.resolve(path(name), followingLink: false)
    do {
      return try Self.names(ItemSite.path(of: location))
    } catch let error as Errno where error == .noSuchFile {
      return []
    }
  }

  /// Waits until a process has met the claim of somebody else on an item: it waits for it then.
  func waitUntil(_ participant: Participant, waitsFor name: String) throws {
    let location = try ItemLocation.resolve(path(name), followingLink: false)
    let prefix = ItemSite.path(of: location) + "/" + ClaimName.prefix
    try eventually("process \(participant.processID) waits for \(name)") {
      try Self.open(by: participant.processID).contains {
        $0.hasPrefix(prefix) && !$0.hasSuffix(" (deleted)") && !Self.isOwn($0, participant)
      }
    }
  }

  private static func isOwn(_ path: String, _ participant: Participant) -> Bool {
    guard let slash = path.lastIndex(of: "/"),
      let name = ClaimName(FileName(String(path[path.index(after: slash)...])))
    else { return false }
    return name.declaration.identity.processID == participant.processID
  }

  /// Waits until a process has begun to publish an item: readers are in its way, and new ones wait.
  func waitUntilPublishing(_ name: String) throws {
    try eventually("somebody is about to publish \(name)") {
      try claims(name).contains { $0.hasPrefix("claim-p") }
    }
  }

  /// What a process has open, as the kernel names it.
  static func open(by processID: Int32) throws -> [String] {
    let directory = "/proc/\(processID)/fd"
    return try names(directory).compactMap { name in
      do throws(Errno) {
        return try linkTarget(directory + "/" + name)
      } catch {
        // Closed meanwhile.
        return nil
      }
    }
  }
}

/// Counts, from any thread.
final class Counter: Sendable {
  private let count = Atomic(0)

  var value: Int { count.load(ordering: .relaxed) }

  /// - Returns: how many came before.
  func next() -> Int { count.add(1, ordering: .relaxed).oldValue }
}
