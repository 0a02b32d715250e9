#if DEBUG
  import Foundation
  import MMWormhole
  import Testing
  import WatchConnectivity
  import Wormhole
  import WormholePeers
  import WormholeSystem
  import WormholeTestSupport

  @Suite("The messages in the session's context", .blocking)
  struct SessionContextTests {
    private final class Delegate: NSObject, WCSessionDelegate, Sendable {
      func session(
        _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
        error: (any Error)?
      ) {}
    }

    private let directory: TemporaryDirectory
    private let container: SharedContainer
    private let session: WCSession
    private let delegate = Delegate()
    private let errors = Errors()

    init() async throws {
      directory = try TemporaryDirectory()
      container = try directory.container()
      session = try WCSession.making(
        .phone, in: container, watchName: "watch", replyTimeout: .seconds(60))
      session.delegate = delegate
      session.activate()
      let session = session
      try await eventuallyAsync("it is activated") { session.activationState == .activated }
    }

    private func messenger() -> MMWormhole {
      let wormhole = MMWormhole(
        applicationGroupIdentifier: nil, optionalDirectory: nil, transitingType: .sessionContext)
      wormhole.errorHandler = { [errors] in errors.add($0) }
      return wormhole
    }

    private func stored() throws -> [String: String]? {
      try PeerSession("phone", in: container).context(for: "watch")?.dictionaryValue?
        .compactMapValues(\.stringValue)
    }

    @Test("outlive a call that fails while one of them is passed, whichever call it is")
    func unreadable() async throws {
      try session.withDefault { () throws in
        let wormhole = messenger()
        wormhole.passMessageObject("precious" as NSString, identifier: "keep")
        let counting = Faults.Plan { _, _ in .proceed }
        Faults.$plan.withValue(counting) {
          wormhole.passMessageObject("0" as NSString, identifier: "other")
        }
        #expect(try stored() == ["keep": "precious", "other": "0"])
        for place in 0..<counting.calls {
          let failing = Faults.Plan { call, index in
            index == place && call != .close ? .fail(.tooManyOpenFiles) : .proceed
          }
          Faults.$plan.withValue(failing) {
            wormhole.passMessageObject("\(place + 1)" as NSString, identifier: "other")
          }
          #expect(try stored()?["keep"] == "precious", "call \(place) failed")
          #expect(wormhole.message(withIdentifier: "keep") as? NSString == "precious")
        }
        #expect(!errors.all.isEmpty)
        // A message that was refused goes with the next one.
        let refusing = Faults.Plan { _, _ in .fail(.tooManyOpenFiles) }
        Faults.$plan.withValue(refusing) {
          wormhole.passMessageObject("late" as NSString, identifier: "waits")
        }
        wormhole.passMessageObject("last" as NSString, identifier: "other")
        #expect(try stored() == ["keep": "precious", "other": "last", "waits": "late"])
      }
      await session.endForGood()
    }

    @Test("begin again when their context is damaged, which is reported")
    func damaged() async throws {
      try session.withDefault { () throws in
        let wormhole = messenger()
        wormhole.passMessageObject("lost" as NSString, identifier: "a")
        let place = container.own.value(PeerNames.context(from: "phone", to: "watch")).path
        try Data("no property list".utf8).write(to: URL(filePath: place))
        wormhole.passMessageObject("new" as NSString, identifier: "b")
        #expect(try stored() == ["b": "new"])
      }
      await session.endForGood()
    }
  }
#endif
