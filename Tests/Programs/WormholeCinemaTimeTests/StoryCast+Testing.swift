import ConnectivityTesting
import Foundation
import WatchConnectivity
import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeSystem
import WormholeTerminals
import WormholeTestSupport

@testable import WormholeCinemaTime

extension Stage {
  /// A stage that shows nothing.
  static var silent: Stage { Stage(hasColour: false) { _ in } }
}

extension StoryCast {
  /// Of the running test's engine.
  convenience init(in place: TemporaryDirectory) throws {
    try self.init(
      .silent, program: BuiltProgram.path("cinematime"), in: URL(fileURLWithPath: place.path)
    ) { try TestEngine.current.container(at: $0.path) }
  }

  private var value: PlainValue { container.value("purchased") }

  func kill(_ role: WCSession.Role) throws { try side(role).process.kill() }

  /// Returns the QR codes in the watch's documents; on etcd in its machine's directory of the container.
  func codes() throws -> [String] {
    var own = directory
    if TestEngine.current == .etcd {
      let state = directory.deletingLastPathComponent().appendingPathComponent("state/wormhole")
      let names = try FileManager.default.contentsOfDirectory(atPath: state.path)
      own = state.appendingPathComponent(names.first ?? "")
    }
    let documents = own.appendingPathComponent("cinematime/watch")
    return try FileManager.default.contentsOfDirectory(atPath: documents.path).sorted()
  }

  /// Kills the phone that runs, and lets nobody start another.
  func forgetPhone() throws {
    try PeerLaunch.Registry(in: container).remove("phone")
    for member in try container.own.presence("peer/phone").members() {
      try Program.send(.kill, to: member.processID)
    }
  }

  /// Changes the bought tickets, as another program would.
  func put(_ ids: [Int]) throws {
    try value.replace(with: .array(ids.map { PropertyListValue($0) }))
  }

  func purchased() throws -> [Int] {
    try value.snapshot().propertyList()?.arrayValue?.compactMap(\.intValue) ?? []
  }
}

extension StorySide {
  /// Returns all notices so far with a text, also those that were not read yet.
  func allNotices(_ text: String) throws -> [String] {
    _ = try answer(lines: "state")
    return notices(text)
  }
}
