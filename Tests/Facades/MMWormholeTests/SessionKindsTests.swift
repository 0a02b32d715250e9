import Foundation
import MMWormhole
import Synchronization
import Testing
import Wormhole
import WormholeTestSupport

/// Without a session here; with one in `ClientsTests`.
@Suite("The session's kinds of wormhole", .blocking)
struct SessionKindsTests {
  let errors = Errors()

  @Test("report that the receiving one cannot pass, read or clear, and it delivers what it gets")
  func receiver() throws {
    let received = Recorder()
    let session = MMWormholeSession(applicationGroupIdentifier: nil, optionalDirectory: nil)
    session.errorHandler = { [errors] in errors.add($0) }
    session.listenForMessage(withIdentifier: "a") { received.add($0) }
    #expect(errors.all == [], "it observes no container")
    session.passMessageObject("x", identifier: "a")
    #expect(session.message(withIdentifier: "a") == nil)
    session.clearMessageContents(forIdentifier: "a")
    session.clearAllMessageContents()
    #expect(errors.all.count == 4)
    #expect(errors.all.allSatisfy { $0.contains("transitingType") }, "\(errors.all)")
    session.notifyListenerForMessage(withIdentifier: nil, message: nil)
    session.notifyListenerForMessage(withIdentifier: "b", message: nil)
    session.notifyListenerForMessage(withIdentifier: "a", message: "sent" as NSString)
    try eventually("it is called") { received.all == ["sent"] }
  }

  @Test(
    "report that the session is not supported, and announce nothing",
    arguments: [MMWormholeTransitingType.sessionContext, .sessionMessage, .sessionFile])
  func unsupported(kind: MMWormholeTransitingType) throws {
    let wormhole = MMWormhole(
      applicationGroupIdentifier: nil, optionalDirectory: nil, transitingType: kind)
    wormhole.errorHandler = { [errors] in errors.add($0) }
    wormhole.passMessageObject([NSObject()], identifier: "a")
    try eventually("the object is refused") { errors.all.count == 1 }
    #expect(errors.all[0].contains("NSObject"), "\(errors.all)")
    #expect(!wormhole.wormholeMessenger.writeMessageObject(nil, forIdentifier: "a"))
    #expect(errors.all.count == 1, "\(errors.all)")
  }
}
