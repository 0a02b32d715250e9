import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import WormholePeers

/// A phone and a watch in a new container; the test is one of them, or none.
struct MessageScene {
  let directory: TemporaryDirectory
  let container: SharedContainer
  let phone: PeerSession
  let watch: PeerSession

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
    phone = try PeerSession("phone", in: container)
    watch = try PeerSession("watch", in: container)
  }

  func participant() throws -> Participant { try Participant(directory.path) }

  /// Returns a message as it was delivered: "phone 3", or "phone 3 again".
  static func describe(_ message: PeerMessage) -> String {
    let again = message.isRedelivery ? " again" : ""
    return "\(message.sender) \(message.value.intValue.map(String.init) ?? "?")\(again)"
  }

  /// Receives and acknowledges all messages that wait for the watch.
  func drain() throws -> [String] {
    let receiver = try watch.receiveMessages()
    defer { receiver.close() }
    return try drain(receiver)
  }

  func drain(_ receiver: PeerReceiver<PeerMessage>) throws -> [String] {
    var all: [String] = []
    while let message = try receiver.next(until: .now) {
      all.append(Self.describe(message))
      try message.acknowledge()
    }
    return all
  }

  /// Returns the path of a participant's log.
  func log(_ name: String) -> String { directory.path + "/" + name + ".log" }

  /// Returns the lines of a participant's log.
  func lines(_ log: String) throws -> [String] {
    do throws(Errno) {
      let bytes = try FileDescriptor.open(log, .readOnly).readToEnd(
        expectedBytes: 0, maximumBytes: 1 << 20)
      return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
    } catch {
      guard error == .noSuchFile else { throw error }
      return []
    }
  }

  /// Returns the only file in a part of the watch's queue.
  func onlyFile(in part: String) throws -> String {
    let place = container.own.queue(PeerNames.messages("watch")).path + "/" + part
    let names = try FileDescriptor.open(place, [.readOnly, .directory]).entries().map(\.name.text)
    return place + "/" + (try #require(names.count == 1 ? names.first : nil, "\(names)"))
  }
}
