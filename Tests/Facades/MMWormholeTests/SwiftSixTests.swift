import Foundation
import MMWormhole
import Synchronization
import Testing
import Wormhole
import WormholeTestSupport

/// The same code in the mode of Swift 6, where an app's model belongs to the main actor.
@MainActor
private final class AlarmModel {
  private(set) var titles: [String] = []
  private let wormhole: MMWormhole

  init(_ wormhole: MMWormhole) {
    self.wormhole = wormhole
    wormhole.listenForMessage(withIdentifier: "alarm") { [weak self] message in
      self?.titles.append(message as? String ?? "nil")
    }
  }
}

/// A listener of another actor runs there.
private actor AlarmStore {
  private let wormhole: MMWormhole
  private let heard: Mutex<[String]>

  init(_ container: SharedContainer) {
    wormhole = MMWormhole(container: container)
    heard = Mutex([])
  }

  nonisolated var titles: [String] { heard.withLock { $0 } }

  func listen() {
    wormhole.listenForMessage(withIdentifier: "alarm") { message in
      self.preconditionIsolated()
      let title = message as? String ?? "nil"
      self.heard.withLock { $0.append(title) }
    }
  }
}

private class SilentWormhole: MMWormhole {
  override func notifyListenerForMessage(
    withIdentifier identifier: String?, message: (any NSCoding)?
  ) {
    guard message as? String != "silent" else { return }
    super.notifyListenerForMessage(withIdentifier: identifier, message: message)
  }
}

@Suite("Code written for MMWormhole, in Swift 6,", .blocking)
struct SwiftSixTests {
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func wormhole() throws -> MMWormhole { MMWormhole(container: try directory.container()) }

  private func onMain<Result: Sendable>(_ body: @MainActor @Sendable () throws -> Result) rethrows
    -> Result
  {
    try DispatchQueue.main.sync { try MainActor.assumeIsolated { try body() } }
  }

  @Test("hears in the actor in which a listener is written")
  func actors() throws {
    let container = try directory.container()
    let model = onMain { AlarmModel(MMWormhole(container: container)) }
    let store = AlarmStore(container)
    Task { await store.listen() }
    let sender = try wormhole()
    try eventually("both hear") {
      // The task may listen later.
      sender.passMessageObject("tea", identifier: "alarm")
      return onMain { model.titles.last == "tea" } && store.titles.last == "tea"
    }
  }

  @Test("may override what a listener hears")
  func overriding() throws {
    let received = Recorder()
    let silent = SilentWormhole(container: try directory.container())
    silent.listenForMessage(withIdentifier: "a") { received.add($0) }
    let sender = try wormhole()
    sender.passMessageObject("one", identifier: "a")
    try eventually("it is heard") { received.all == ["one"] }
    sender.passMessageObject("silent", identifier: "a")
    sender.passMessageObject("two", identifier: "a")
    // Perhaps for both changes: a listener gets the latest message.
    try eventually("the next is heard") { received.all.last == "two" }
    #expect(!received.all.contains("silent"))
  }
}
