import Foundation
import Testing
import WatchConnectivity
import WormholeTestSupport

@testable import Communicator

@Suite("States", .blocking)
struct StatesTests {
  @Test("of reachability follow the session, the app and the counterpart, in this order")
  func reachability() {
    for isReachable in [false, true] {
      for isInstalled in [false, true] {
        #expect(
          Reachability(
            isActivated: false, isCounterpartInstalled: isInstalled, isReachable: isReachable)
            == .notReachable)
      }
      #expect(
        Reachability(isActivated: true, isCounterpartInstalled: false, isReachable: isReachable)
          == .notReachable)
    }
    #expect(
      Reachability(isActivated: true, isCounterpartInstalled: true, isReachable: false)
        == .backgroundOnly)
    #expect(
      Reachability(isActivated: true, isCounterpartInstalled: true, isReachable: true)
        == .immediatelyReachable)
  }

  @Test("of reachability satisfy themselves and lesser ones")
  func suffices() {
    let rising: [Reachability] = [.notReachable, .backgroundOnly, .immediatelyReachable]
    for (index, actual) in rising.enumerated() {
      for (needed, minimum) in rising.enumerated() {
        #expect(actual.suffices(for: minimum) == (needed <= index))
      }
    }
    #expect(Reachability.immediateMessaging == .immediatelyReachable)
  }

  @Test("of the watch answer shorter questions, too")
  func watchState() {
    let url = URL(fileURLWithPath: "/tmp")
    let enabled = WatchState.AppState.ComplicationState.enabled(numberOfUpdatesAvailableToday: 7)
    let all: [(WatchState, WatchState.AppState, WatchState.AppState.ComplicationState, Int)] = [
      (.notPaired, .notInstalled, .notEnabled, 0),
      (.paired(.notInstalled), .notInstalled, .notEnabled, 0),
      (.paired(.installed(.notEnabled, nil)), .installed(.notEnabled, nil), .notEnabled, 0),
      (.paired(.installed(enabled, url)), .installed(enabled, url), enabled, 7),
    ]
    for (state, app, complication, count) in all {
      #expect(state.appState == app)
      #expect(state.complicationState == complication)
      #expect(state.numberOfComplicationUpdatesAvailableToday == count)
    }
  }

  @Test("of the session are its own")
  func state() {
    #expect(Communicator.State(WCSessionActivationState.notActivated) == .notActivated)
    #expect(Communicator.State(WCSessionActivationState.inactive) == .inactive)
    #expect(Communicator.State(WCSessionActivationState.activated) == .activated)
  }

  @Test("that prevent sending are described in a sentence")
  func error() {
    let error = Communicator.Error.sessionIsNotReachable(
      minimumReachability: .immediatelyReachable, actual: .backgroundOnly)
    #expect(
      "\(error)".hasPrefix("cannot send: the counterpart is reachable in the background only"))
  }
}
