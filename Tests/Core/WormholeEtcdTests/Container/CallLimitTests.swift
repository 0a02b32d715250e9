import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport

@testable import WormholeEtcd

@Suite("A container on etcd, for a caller whose deadline has passed,", .blocking, .needsEtcd)
struct CallLimitTests {
  private let directory: TemporaryDirectory
  private let patience = Patience()
  private let container: SharedContainer

  init() throws {
    directory = try TemporaryDirectory()
    let location = try #require(try TestEngine.etcd.location(of: directory.path))
    container = try SharedContainer(
      try EtcdContainer.created(location, through: patience), companion: directory.path + "/here")
  }

  private func mayTakeLong(_ step: () throws -> Void) throws -> Bool {
    let begun = ContinuousClock.now
    let questions = try patience.questions(in: step)
    #expect(!questions.isEmpty)
    if questions.allSatisfy({ $0.asked.duration(to: $0.deadline) <= .seconds(1) }) { return false }
    #expect(questions.allSatisfy { begun.duration(to: $0.deadline) >= .seconds(3) }, "a mixture")
    return true
  }

  @Test("asks for a second where it asks for ten without one")
  func calls() throws {
    try container.queue("q").sender("a").enqueue(1)
    let steps: [(String, (SharedContainer) throws -> Void)] = [
      ("read", { _ = try $0.value("v").read() }),
      ("post", { try $0.notification("n").post() }),
      ("look who is present", { _ = try $0.presence("p").members() }),
      ("list", { _ = try $0.valueIdentifiers() }),
      ("look through a queue", { _ = try $0.queue("q").outstanding() }),
    ]
    for (name, step) in steps {
      #expect(try !mayTakeLong { try step(container.limited(until: .now)) }, "\(name)")
      #expect(try mayTakeLong { try step(container) }, "\(name)")
    }
  }

  @Test("takes an entry within a second, and has ten to acknowledge it")
  func taking() throws {
    try container.queue("q").sender("a").enqueue(1)
    let consumer = try container.queue("q").consume()
    var entry: PlainEntry?
    #expect(try !mayTakeLong { entry = try consumer.next(until: .now) })
    #expect(try mayTakeLong { try #require(entry).acknowledge() })
    // A deadline far away makes no single question longer.
    try container.queue("q").sender("a").enqueue(2)
    let far = ContinuousClock.now + .seconds(3_600)
    let questions = try patience.questions { _ = try consumer.next(until: far) }
    #expect(questions.allSatisfy { $0.asked.duration(to: $0.deadline) <= CallLimit.standardWait })
  }

  @Test("enters with a registration that outlives it")
  func registration() throws {
    var registration: PresenceRegistration?
    let presence = container.limited(until: .now).presence("p")
    #expect(try !mayTakeLong { registration = try presence.enter() })
    #expect(try mayTakeLong { try #require(registration).confirm() })
  }
}
