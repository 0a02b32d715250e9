import FoundationEssentials
import Synchronization
import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport

@testable import WormholeFiles

/// Items of one test, and the processes that coordinate them.
///
/// When all accesses have ended, the directory holds only the items, and the container beside it
/// only the presenters' entries.
struct RaceScene {
  let directory: TemporaryDirectory
  /// The directory of the items.
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

  /// Returns the entries in the directory of the items, or in one of them.
  ///
  /// The sites that this process keeps for a moment are removed first.
  func names(in name: String = ".") throws -> [String] {
    KeptSites.shared.removeAll()
    return try Self.names(path(name))
  }

  static func names(_ path: String) throws -> [String] {
    try TemporaryDirectory.names(of: path)
  }

  /// Expects that ended, killed and overtaken accesses have left nothing behind.
  func expectOnly(
    _ names: [String], in name: String = ".", _ comment: String = "",
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    var found = try self.names(in: name)
    // Another process may keep a site for a moment.
    let end = ContinuousClock.now + .seconds(10)
    while found != names.sorted(), ContinuousClock.now < end {
      pauseThread(.milliseconds(1))
      found = try self.names(in: name)
    }
    #expect(
      found == names.sorted(), "\(comment) \(directory.listing)", sourceLocation: sourceLocation)
  }

  /// Expects that what a late process has worked on is kept beside an item, and takes it away.
  func takeKept(
    _ name: String, _ text: String, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let kept = try names().filter { $0.hasPrefix(name + ".conflict-") }
    #expect(kept.count == 1, "\(directory.listing)", sourceLocation: sourceLocation)
    for copy in kept {
      #expect(try self.text(copy) == text, sourceLocation: sourceLocation)
      try removeFile(path(copy), at: Directory.current)
    }
  }

  // MARK: Gates

  /// Returns the entries in an item's lease; empty if there is none.
  func entries(_ name: String) throws -> [String] {
    let location = try ItemPath.find(path(name), followingLink: false).place
    do {
      return try Self.names(ItemSite.path(of: location) + "/held")
    } catch let error as Errno where error == .noSuchFile {
      return []
    }
  }

  /// Waits until a process has met another process's lease of an item, and so waits for it.
  func waitUntil(_ participant: Participant, waitsFor name: String) throws {
    let location = try ItemPath.find(path(name), followingLink: false).place
    let lease = ItemSite.path(of: location) + "/held"
    try eventually("process \(participant.processID) waits for \(name)") {
      let isHolder = try entries(name).contains {
        EntryName(FileName($0))?.declaration.identity.processID == participant.processID
      }
      return try !isHolder && Self.open(by: participant.processID).contains(lease)
    }
  }

  /// Waits until a process has begun to publish an item: present readers block it, and new ones
  /// wait.
  func waitUntilPublishing(_ name: String) throws {
    try eventually("a process is about to publish \(name)") {
      try entries(name).contains { EntryName(FileName($0))?.kind == .publishing }
    }
  }

  /// Returns the open files of a process, as the kernel names them.
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

/// A counter for any thread.
final class Counter: Sendable {
  private let count = Atomic(0)

  var value: Int { count.load(ordering: .relaxed) }

  /// - Returns: The number of earlier calls.
  func next() -> Int { count.add(1, ordering: .relaxed).oldValue }
}
