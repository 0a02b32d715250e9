import ConnectivityTesting
import Foundation
import Testing
import WatchConnectivity
import Wormhole
import WormholePeers
import WormholeSystem
import WormholeTestSupport

@testable import WormholeCinemaTime

@Suite("A film that is open on one side", .blocking)
struct HandoffTests {
  @Test("is offered to the other side, and opened there", .bothEngines)
  func running() throws {
    let scene = try ElementScene()
    defer { scene.end() }
    let (phone, watch) = (try scene.phone(), try scene.watch())
    #expect(try phone.answer("offers") == "nothing to continue")
    #expect(try phone.answer("continue") == "nothing to continue")
    _ = try watch.answer(lines: "show 34340")
    _ = try phone.notices("phone: Continue 'The General' from watch", count: 1)
    #expect(try phone.answer("offers") == "Continue 'The General' from watch")
    #expect(try phone.answer("continue") == "continues 'The General' from watch")
    _ = try phone.notices("opens The General, continued from watch", count: 1)
    _ = try watch.answer(lines: "show 23523")
    _ = try phone.notices("Continue 'Africa Screams' from watch", count: 1)
    #expect(try watch.answer("close") == "closed")
    _ = try phone.notices("'Africa Screams' is not open on watch any more", count: 1)
    #expect(try phone.answer("offers") == "nothing to continue")
    // And the other way.
    _ = try phone.answer(lines: "show 23523")
    _ = try watch.notices("Continue 'Africa Screams' from phone", count: 1)
    #expect(try watch.answer("continue") == "continues 'Africa Screams' from phone")
    _ = try watch.notices("opens Africa Screams, continued from phone", count: 1)
  }

  @Test("is opened on a phone that does not run: it is started for that")
  func starting() throws {
    let scene = try ElementScene()
    defer { scene.end() }
    let watch = try scene.watch()
    // The phone that the watch's greeting has started.
    _ = try watch.notices("the phone has verified it", count: 1)
    for member in try scene.cast.container.own.presence("peer/phone").members() {
      try Program.send(.kill, to: member.processID)
    }
    _ = try watch.wait(for: "state", toShow: "activated")
    #expect(try scene.cast.handOver() == "nothing to continue")
    _ = try watch.answer(lines: "show 34340")
    #expect(try scene.cast.handOver() == "the phone continues 'The General' from watch")
    try scene.cast.waitForPhone(toPrint: "phone: opens The General, continued from watch")
    #expect(try scene.cast.isPhoneInBackground())
  }

  @Test("is offered no more when its side is killed, also while it is suspended")
  func dying() throws {
    let scene = try ElementScene()
    defer { scene.end() }
    let (phone, watch) = (try scene.phone(), try scene.watch())
    _ = try watch.answer(lines: "show 34340")
    _ = try phone.notices("Continue 'The General' from watch", count: 1)
    try watch.process.stop()
    // A suspended watch goes on offering.
    #expect(try phone.answer("continue") == "continues 'The General' from watch")
    _ = try phone.notices("opens The General", count: 1)
    try scene.cast.kill(.watch)
    _ = try phone.notices("'The General' is not open on watch any more", count: 1)
    #expect(try phone.answer("continue") == "nothing to continue")
    #expect(try scene.cast.handOver() == "nothing to continue")
  }
}
