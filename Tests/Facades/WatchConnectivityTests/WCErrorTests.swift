import Foundation
import Testing
import WatchConnectivity
import WormholeTestSupport

@Suite("WCError", .blocking)
struct WCErrorTests {
  @Test("has Apple's numbers, in Apple's domain")
  func numbers() {
    let codes: [(WCError.Code, Int)] = [
      (.genericError, 7001), (.sessionNotSupported, 7002), (.sessionMissingDelegate, 7003),
      (.sessionNotActivated, 7004), (.deviceNotPaired, 7005), (.watchAppNotInstalled, 7006),
      (.notReachable, 7007), (.invalidParameter, 7008), (.payloadTooLarge, 7009),
      (.payloadUnsupportedTypes, 7010), (.messageReplyFailed, 7011),
      (.messageReplyTimedOut, 7012), (.fileAccessDenied, 7013), (.deliveryFailed, 7014),
      (.insufficientSpace, 7015), (.sessionInactive, 7016), (.transferTimedOut, 7017),
      (.companionAppNotInstalled, 7018), (.watchOnlyApp, 7019),
    ]
    for (code, number) in codes {
      let error: any Error = WCError(code)
      #expect((error as NSError).code == number)
      #expect((error as NSError).domain == WCErrorDomain)
      #expect(WCError.Code(rawValue: number) == code)
    }
  }

  @Test("is matched by catch and case, through its code's name")
  func matched() {
    var matches: [String] = []
    for error in [WCError(.notReachable), WCError(.payloadTooLarge), CocoaError(.fileNoSuchFile)]
      as [any Error]
    {
      do {
        throw error
      } catch WCError.notReachable {
        matches.append("notReachable")
      } catch let error as WCError where error.code == .payloadTooLarge {
        matches.append("tooLarge")
      } catch {
        matches.append("other")
      }
    }
    #expect(matches == ["notReachable", "tooLarge", "other"])
  }

  @Test("describes the failure in a sentence, and the reason under Foundation's key")
  func sentence() {
    let error: any Error = WCError(
      .notReachable, userInfo: [NSLocalizedFailureReasonErrorKey: "It is asleep."])
    #expect(error.localizedDescription == "The counterpart app is not reachable.")
    #expect((error as NSError).localizedFailureReason == "It is asleep.")
    #expect(WCError(.notReachable).errorUserInfo[NSLocalizedFailureReasonErrorKey] == nil)
  }
}
