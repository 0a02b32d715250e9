import FoundationEssentials
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import WormholePeers

/// A sender and a receiver of files in a new container, and a directory beside it for files.
struct FileScene {
  let directory: TemporaryDirectory
  let container: SharedContainer
  let sender: PeerSession
  let receiver: PeerSession

  init(under parent: String? = nil) throws {
    directory = try TemporaryDirectory(under: parent)
    try makeDirectory(directory.path + "/container")
    try makeDirectory(directory.path + "/files")
    container = try TestEngine.current.container(at: directory.path + "/container")
    sender = try PeerSession("phone", in: container)
    receiver = try PeerSession("watch", in: container)
  }

  func participant() throws -> Participant { try Participant(container.url.path) }

  func path(_ name: String) -> String { directory.path + "/files/" + name }

  func url(_ name: String) -> URL { URL(filePath: path(name)) }

  /// The queue of the peer's files.
  var queue: String { container.url.path + "/own/queues/peer%2Fwatch%2Ffiles" }

  @discardableResult
  func write(_ content: some Collection<UInt8>, _ name: String) throws -> URL {
    try FileDescriptor.open(path(name), [.writeOnly, .create, .truncate]).writeAll(Array(content))
    return url(name)
  }

  /// Returns content of a length that reveals the place of damage.
  static func content(_ count: Int, _ seed: UInt8 = 1) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ ($0 >> 8)) ^ seed }
  }

  func read(_ path: String) throws -> [UInt8]? {
    do throws(Errno) {
      return try FileDescriptor.open(path, .readOnly).readToEnd(
        expectedBytes: 0, maximumBytes: 1 << 26)
    } catch {
      guard error == .noSuchFile else { throw error }
      return nil
    }
  }

  func read(_ url: URL) throws -> [UInt8]? { try read(url.path) }

  func exists(_ name: String) throws -> Bool { try read(path(name)) != nil }

  /// Returns the entries of the peer's queue of files, without empty directories, outcomes and
  /// receipts.
  func leftovers() throws -> [String] {
    try directory.listing.split(separator: "\n").map(String.init).filter { line in
      line.contains("queues/peer%2Fwatch%2Ffiles/") && !line.contains(" directory ")
        && !line.contains("/outcomes/") && !line.contains("/sent/") && !line.contains("/lease/")
        // Of another machine, as far as etcd knows: it goes with the next consumer there.
        && !line.contains("/state/wormhole/")
    } + attachments()
  }

  private func attachments() throws -> [String] {
    if let keys = try container.keys(ofFilesIn: PeerNames.files("watch")) { return keys }
    do throws(Errno) {
      return try FileDescriptor.open(queue + "/attachments", [.readOnly, .directory]).entries()
        .map { "attachments/" + $0.name.text }
    } catch {
      guard error == .noSuchFile else { throw error }
      return []
    }
  }

  /// Receives and acknowledges all files, and checks that nothing is left.
  func receiveAll() throws -> [(name: String, content: [UInt8]?, isRedelivery: Bool)] {
    let files = try receiver.receiveFiles()
    defer { files.close() }
    var all: [(String, [UInt8]?, Bool)] = []
    while let file = try files.next(until: .now) {
      all.append((file.name, try read(file.url), file.isRedelivery))
      try file.acknowledge()
    }
    return all
  }
}

extension PeerFileTransfer {
  /// Waits for its end, within a deadline that only ends a failing test.
  func ended() throws -> QueueEntryStatus { try finalStatus(until: soon) }

  func store() throws { try waitUntilStored(until: soon) }
}

/// Runs a closure that must fail, and returns its error.
func failure(_ body: () throws -> Void) throws -> WormholeError {
  do {
    try body()
  } catch let error as WormholeError {
    return error
  }
  throw NeverHappened(what: "an error")
}
