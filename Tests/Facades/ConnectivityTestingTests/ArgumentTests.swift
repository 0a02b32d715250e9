import ConnectivityTesting
import Foundation
import Testing
import WatchConnectivity
import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeTestSupport

/// Each of these used to end the process, or might.
@Suite("No argument ends the process: sessions", .blocking)
struct ArgumentTests {
  @Test("a session takes any payload, any time and any URL, and reports what it cannot do")
  func session() async throws {
    let scene = try TestScene()
    let phone = try scene.session(.phone, replyTimeout: .seconds(Int64.max))
    let delegate = RecordingDelegate()
    phone.delegate = delegate
    phone.activate()
    try await phone.waitUntil(.activated)
    let watch = scene.counterpart(.watch, script: [.answer(["a": 1])])
    try await watch.arrive()
    try await phone.waitUntil(\.isReachable)
    final class Plain {}
    var deep: Any = [1]
    for _ in 0..<2_000 { deep = [deep] }
    let payloads: [[String: Any]] = [
      [:], ["": 1], ["a\0b": "c\0d"], ["a": Double.nan], ["a": Double.infinity],
      ["a": Date.distantFuture], ["a": Date(timeIntervalSinceReferenceDate: .nan)],
      ["a": UInt64.max], ["a": Plain()], ["a": NSNull()], ["a": deep],
      ["a": Optional<Int>.none as Any],
      ["a": Data(count: 300_000)],
    ]
    let times: [Duration] = [.zero, .seconds(Int64.max), .seconds(Int64.min), .milliseconds(1)]
    for payload in payloads {
      // An error is what some of them are for.
      try? phone.updateApplicationContext(payload)
      phone.sendMessage(payload, replyHandler: nil)
      phone.sendMessage(payload, replyHandler: { _ in }, errorHandler: { _ in })
      phone.transferUserInfo(payload).cancel()
      phone.transferCurrentComplicationUserInfo(payload).cancel()
      phone.transferFile(URL(filePath: "/dev/null"), metadata: payload).cancel()
    }
    for time in times {
      phone.sendMessage(["a": 1], expiresAfter: time, replyHandler: { _ in })
      phone.transferUserInfo(["a": 1], expiresAfter: time, key: "").cancel()
      phone.transferUserInfo(["a": 1], expiresAfter: time, key: "k\0").cancel()
      phone.transferFile(URL(filePath: "/dev/null"), metadata: nil, expiresAfter: time).cancel()
    }
    for text in ["", "x", "http:", "https://example.com", "file:", "file:///%00", "file:///%FF"] {
      guard let url = URL(string: text) else { continue }
      phone.transferFile(url, metadata: nil).cancel()
    }
    #expect(phone.activationState == .activated)
  }

  @Test("a phone cannot come back as another one")
  func comeBack() async throws {
    let phone = try TestScene().counterpart(.phone)
    let error = await #expect(throws: WormholeError.self) { try await phone.comeBack(as: "other") }
    #expect(error?.code == .unsupportedValue)
  }
}
