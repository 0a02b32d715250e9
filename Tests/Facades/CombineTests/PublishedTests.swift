import Combine
import Dispatch
import Foundation
import Testing
import WormholeTestSupport

private class Player: ObservableObject {
  @Published var volume = 7
  @Published var title: String?
}

private final class RadioPlayer: Player {
  @Published var station = 1
  // As code without a property that could be published writes it.
  var isOn = false { willSet { objectWillChange.send() } }
}

/// Has nothing published.
private final class Lamp: ObservableObject {
  var isOn = false { willSet { objectWillChange.send() } }
}

private final class OwnPublisher: ObservableObject {
  let objectWillChange = ObservableObjectPublisher()
  @Published var volume = 7
}

/// Conforms to nothing.
private final class Plain {
  @Published private(set) var count = 0
  @Published var texts: [String]

  init(_ texts: [String]) { _texts = Published(initialValue: texts) }

  func add() { count += 1 }
}

/// Has properties that its publisher must not read. `@unchecked`, because a lock protects the items, and one
/// thread uses the rest.
private final class Worker: ObservableObject, CustomReflectable, @unchecked Sendable {
  @Published var title = ""
  @Published var length = 0
  unowned var parent: Lamp
  private let lock = NSLock()
  private var items: [Int] = []

  init(_ parent: Lamp) {
    self.parent = parent
    $title.map(\.count).assign(to: &$length)
  }

  // A look is the fault that a test finds.
  var customMirror: Mirror { fatalError("something looks at it") }
  func add(_ item: Int) { lock.withLock { items = [item] } }
}

@Suite("A published property", .blocking)
struct PublishedTests {
  private let heard = Heard()

  @Test("tells of its changes without a look at the other properties of the object")
  func others() {
    var parent: Lamp? = Lamp()
    let worker = parent.map(Worker.init)
    parent = nil
    let subscription = worker?.objectWillChange.sink { [heard] in heard.add("change") }
    worker?.title = "Nosferatu"
    // The second is that of the property that is assigned to, which nothing sets by itself.
    #expect(heard.all == ["change", "change"] && worker?.length == 9)
    subscription?.cancel()
  }

  @Test("is looked at by the main thread while others change what a lock protects")
  func race() {
    let lamp = Lamp()
    let workers = (0..<2_000).map { _ in Worker(lamp) }
    let others = DispatchGroup()
    DispatchQueue.global().async(group: others) {
      for round in 0..<10 { for worker in workers { worker.add(round) } }
    }
    let subscriptions = workers.map { $0.objectWillChange.sink { [heard] in heard.add("change") } }
    others.wait()
    workers.last?.title = "M"
    #expect(heard.all.count == 2)
    _ = subscriptions
  }

  @Test("tells first that the object will change, then the new value, and is set afterwards")
  func order() {
    let player = Player()
    let subscriptions = [
      player.$volume.sink { [heard] in heard.add("new \($0), now \(player.volume)") },
      player.objectWillChange.sink { [heard] in heard.add("will change, now \(player.volume)") },
    ]
    player.volume = 8
    #expect(player.volume == 8)
    #expect(heard.all == ["new 7, now 7", "will change, now 7", "new 8, now 7"])
    player.volume += 1
    #expect(player.volume == 9 && heard.all.last == "new 9, now 8")
    _ = subscriptions
  }

  @Test("gives each subscriber the current value at once")
  func current() {
    let player = Player()
    player.title = "Metropolis"
    let first = player.$title.sink { [heard] in heard.add($0 ?? "none") }
    player.title = nil
    let second = player.$title.sink { [heard] in heard.add($0 ?? "still none") }
    #expect(heard.all == ["Metropolis", "none", "still none"])
    for each in [first, second] { each.cancel() }
  }

  @Test("of a superclass reports, too, to one publisher; a class may send it itself")
  func superclass() {
    let player = RadioPlayer()
    let subscription = player.objectWillChange.sink { [heard] in heard.add("will") }
    #expect(player.objectWillChange === (player as Player).objectWillChange)
    player.volume = 8
    player.station = 2
    player.isOn = true
    #expect(heard.all.count == 3)
    let lamp = Lamp()
    let other = lamp.objectWillChange.sink { [heard] in heard.add("lamp \(lamp.isOn)") }
    lamp.isOn = true
    #expect(heard.all.last == "lamp false")
    for each in [subscription, other] { each.cancel() }
  }

  @Test("does not send a publisher that the class declares")
  func own() {
    let object = OwnPublisher()
    let subscription = object.objectWillChange.sink { [heard] in heard.add("will") }
    object.volume = 8
    #expect(heard.all == [])
    subscription.cancel()
  }

  @Test("works in a class that conforms to nothing")
  func plain() {
    let plain = Plain(["a"])
    let subscription = plain.$count.dropFirst().sink { [heard] in heard.add("\($0)") }
    plain.add()
    plain.texts.append("b")
    #expect(heard.all == ["1"] && plain.texts == ["a", "b"])
    subscription.cancel()
  }

  @Test("that its subscriber sets keeps the later value, as does a later subscriber")
  func reentrant() {
    let player = Player()
    let subscription = player.$volume.sink { if $0 > 10 { player.volume = 10 } }
    player.volume = 11
    #expect(player.volume == 10)
    let later = player.$volume.sink(into: heard)
    #expect(heard.all == ["10"])
    for each in [subscription, later] { each.cancel() }
  }

  @Test("is assigned to by a publisher until it is released, or until it is cancelled")
  func assigned() throws {
    let source = CurrentValueSubject<Int, Never>(1)
    weak var gone: Player?
    weak var property: Published<Int>.Publisher?
    do {
      let player = Player()
      (gone, property) = (player, player.$volume)
      source.assign(to: &player.$volume)
      let subscription = player.objectWillChange.sink { [heard] in heard.add("will") }
      source.send(2)
      #expect(player.volume == 2 && heard.all == ["will"])
      let other = Player()
      let assignment = source.assign(to: \.volume, on: other)
      #expect(other.volume == 2)
      assignment.cancel()
      source.send(3)
      #expect(player.volume == 3 && other.volume == 2)
      subscription.cancel()
    }
    // Another test's look at all objects may hold it for a moment.
    try eventually("the object is gone") { gone == nil && property == nil }
    source.send(4)
  }

  @Test("reports to the publisher of its own object, however many there were before")
  func manyObjects() {
    // Released together, so that later ones get the addresses of earlier ones.
    var addresses: Set<ObjectIdentifier> = []
    for _ in 0..<20 {
      let players = (0..<100).map { _ in Player() }
      addresses.formUnion(players.map(ObjectIdentifier.init))
      for player in players {
        var count = 0
        let subscription = player.objectWillChange.sink { count += 1 }
        player.volume = 8
        #expect(count == 1)
        subscription.cancel()
      }
    }
    #expect(addresses.count < 2_000)
  }

  @Test("reports from the first moment, also if two threads ask for the publisher at once")
  func twoThreads() {
    for _ in 0..<2_000 {
      let player = Shared(Player())
      let kept = Shared(Kept())
      DispatchQueue.concurrentPerform(iterations: 2) { _ in
        kept.value.publishers.add(player.value.objectWillChange)
      }
      #expect(kept.value.publishers.areSame)
      let subscription = player.value.objectWillChange.sink { [heard] in heard.add("will") }
      player.value.volume = 8
      subscription.cancel()
    }
    #expect(heard.all.count == 2_000)
  }

  private final class Kept {
    let publishers = Publishers()

    final class Publishers {
      private let lock = NSLock()
      private var all: [ObservableObjectPublisher] = []

      func add(_ publisher: ObservableObjectPublisher) { lock.withLock { all.append(publisher) } }

      var areSame: Bool { lock.withLock { all.count == 2 && all[0] === all[1] } }
    }
  }
}
