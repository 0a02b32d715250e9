import Dispatch
import Foundation
import MMWormhole
import Synchronization
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

/// The messages of a listener, in a form that can be compared.
final class Recorder: Sendable {
  private let messages = Mutex<[String]>([])
  func add(_ message: Any?) {
    dispatchPrecondition(condition: .onQueue(.main))
    let text = message.map { "\($0)" } ?? "nil"
    messages.withLock { $0.append(text) }
  }
  var all: [String] { messages.withLock { $0 } }
}

final class Errors: Sendable {
  private let errors = Mutex<[String]>([])
  func add(_ error: any Error) { errors.withLock { $0.append("\(error)") } }
  var all: [String] { errors.withLock { $0 } }
  func removeAll() { errors.withLock { $0 = [] } }
}

/// The rules are those of MMWormhole 2.0's source and of its own tests, except for its bugs.
@Suite("MMWormhole", .blocking, .bothEngines)
struct MMWormholeTests {
  let directory: TemporaryDirectory
  let container: SharedContainer
  let wormhole: MMWormhole
  let received = Recorder()

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
    wormhole = MMWormhole(container: container, optionalDirectory: "wormhole")
  }

  @Test("keeps the latest message of an identifier, which reading does not remove")
  func latest() {
    #expect(wormhole.message(withIdentifier: "a") == nil)
    wormhole.passMessageObject(["number": 1], identifier: "a")
    let message: [String: Any] = ["number": 2, "text": "é", "list": [1.5, true] as [Any]]
    wormhole.passMessageObject(message, identifier: "a")
    for _ in 0..<2 {
      let message = wormhole.message(withIdentifier: "a") as? [String: Any]
      #expect(message?["number"] as? Int == 2)
      #expect(message?["text"] as? String == "é")
      #expect((message?["list"] as? [Any])?.first as? Double == 1.5)
    }
    wormhole.passMessageObject(nil, identifier: nil)
    wormhole.passMessageObject("x", identifier: nil)
    #expect(wormhole.message(withIdentifier: nil) == nil)
  }

  @Test("holds numbers that cast to every type, as the original's do")
  func numbers() throws {
    let heard = Mutex<String?>(nil)
    wormhole.listenForMessage(withIdentifier: "a") { message in
      heard.withLock { $0 = ReceivedNumbers.findings(in: message as? [String: Any] ?? [:]) }
    }
    wormhole.passMessageObject(ReceivedNumbers.sent, identifier: "a")
    let message = wormhole.message(withIdentifier: "a") as? [String: Any]
    #expect(ReceivedNumbers.findings(in: message ?? [:]) == "")
    try eventually("it is delivered") { heard.withLock { $0 } == "" }
  }

  @Test("calls the listener on the main queue, also in the sending process")
  func selfDelivery() throws {
    wormhole.listenForMessage(withIdentifier: "a") { [received] in received.add($0) }
    wormhole.passMessageObject("one", identifier: "a")
    try eventually("it is delivered") { received.all == ["one"] }
    wormhole.passMessageObject("one", identifier: "a")
    try eventually("the same message is delivered again") { received.all == ["one", "one"] }
  }

  @Test("receives from another process that knows only the container")
  func otherProcess() throws {
    wormhole.listenForMessage(withIdentifier: "a") { [received] in received.add($0) }
    let other = try Participant(directory.path)
    #expect(try other.ask("set wormhole/a 7") == "done")
    try eventually("it is delivered") { received.all == ["7"] }
    #expect(wormhole.message(withIdentifier: "a") as? Int == 7)
  }

  @Test("delivers nil for a nil message, not the one before")
  func nilMessage() throws {
    wormhole.passMessageObject("old", identifier: "a")
    wormhole.listenForMessage(withIdentifier: "a") { [received] in received.add($0) }
    wormhole.passMessageObject(nil, identifier: "a")
    try eventually("nil is delivered") { received.all == ["nil"] }
    #expect(wormhole.message(withIdentifier: "a") == nil)
  }

  @Test("delivers the last message of a burst, and nothing older after it")
  func burst() throws {
    wormhole.listenForMessage(withIdentifier: "a") { [received] in received.add($0) }
    for number in 1...100 { wormhole.passMessageObject(number, identifier: "a") }
    try eventually("the last one is delivered") { received.all.last == "100" }
    let numbers = received.all.compactMap { Int($0) }
    #expect(numbers == numbers.sorted() && numbers.count <= 100)
  }

  @Test("has one listener per identifier: a second replaces it, nil and stop remove it")
  func oneListener() throws {
    let second = Recorder()
    let control = Recorder()
    let other = MMWormhole(container: container, optionalDirectory: "wormhole")
    other.listenForMessage(withIdentifier: "a") { control.add($0) }
    wormhole.listenForMessage(withIdentifier: "a") { [received] in received.add($0) }
    wormhole.listenForMessage(withIdentifier: "a") { second.add($0) }
    wormhole.passMessageObject(1, identifier: "a")
    try eventually("the second is called") { second.all == ["1"] && control.all == ["1"] }
    #expect(received.all == [])
    wormhole.stopListeningForMessage(withIdentifier: "a")
    wormhole.passMessageObject(2, identifier: "a")
    try eventually("another wormhole's goes on") { control.all == ["1", "2"] }
    wormhole.listenForMessage(withIdentifier: "a") { [received] in received.add($0) }
    wormhole.listenForMessage(withIdentifier: "a", listener: nil)
    wormhole.passMessageObject(3, identifier: "a")
    try eventually("another wormhole's goes on") { control.all == ["1", "2", "3"] }
    wormhole.passMessageObject(nil, identifier: "a")
    try eventually("another wormhole's gets nil, too") { control.all.last == "nil" }
    #expect(second.all == ["1"] && received.all == [])
  }

  @Test("ends its listeners when it is released")
  func deallocation() throws {
    let control = Recorder()
    wormhole.listenForMessage(withIdentifier: "a") { control.add($0) }
    var other: MMWormhole? = MMWormhole(container: container, optionalDirectory: "wormhole")
    other?.listenForMessage(withIdentifier: "a") { [received] in received.add($0) }
    weak let gone = other
    other = nil
    #expect(gone == nil, "only its owner keeps it")
    wormhole.passMessageObject(1, identifier: "a")
    try eventually("the remaining one is called") { control.all == ["1"] }
    #expect(received.all == [])
  }

  @Test("removes messages without calling listeners, and all of them only within its directory")
  func clears() throws {
    let whole = MMWormhole(container: container)
    wormhole.passMessageObject(1, identifier: "a")
    wormhole.passMessageObject(2, identifier: "b/c")
    wormhole.passMessageObject(2, identifier: "d")
    let similar = MMWormhole(container: container, optionalDirectory: "wormhole2")
    similar.passMessageObject(5, identifier: "a")
    whole.passMessageObject(3, identifier: "a")
    wormhole.listenForMessage(withIdentifier: "a") { [received] in received.add($0) }
    wormhole.clearMessageContents(forIdentifier: "a")
    #expect(wormhole.message(withIdentifier: "a") == nil)
    whole.clearAllMessageContents()
    #expect(whole.message(withIdentifier: "a") as? Int == 3, "no directory was given")
    #expect(wormhole.message(withIdentifier: "b/c") as? Int == 2, "a slash is just a character")
    wormhole.clearAllMessageContents()
    #expect(wormhole.message(withIdentifier: "b/c") == nil)
    #expect(wormhole.message(withIdentifier: "d") == nil)
    #expect(similar.message(withIdentifier: "a") as? Int == 5, "its directory only begins so")
    let none = MMWormhole(container: container, optionalDirectory: "")
    #expect(none.message(withIdentifier: "a") as? Int == 3, "an empty directory is none")
    #expect(whole.message(withIdentifier: "a") as? Int == 3)
    wormhole.passMessageObject(4, identifier: "a")
    try eventually("only the message is delivered") { received.all == ["4"] }
  }

  @Test("of another group or directory never receives the messages")
  func namespaces() throws {
    let elsewhere = try TemporaryDirectory()
    let otherGroup = MMWormhole(
      container: try elsewhere.container(), optionalDirectory: "wormhole")
    let otherDirectory = MMWormhole(container: container, optionalDirectory: "other")
    let others = Recorder()
    otherGroup.listenForMessage(withIdentifier: "a") { others.add($0) }
    otherDirectory.listenForMessage(withIdentifier: "a") { others.add($0) }
    wormhole.listenForMessage(withIdentifier: "a") { [received] in received.add($0) }
    for message in [1, nil, 2] as [Int?] { wormhole.passMessageObject(message, identifier: "a") }
    try eventually("it is delivered") { received.all.last == "2" }
    #expect(others.all == [])
  }

  @Test("reports failures to its error handler instead of dropping them")
  func failures() throws {
    let errors = Errors()
    wormhole.errorHandler = { errors.add($0) }
    wormhole.passMessageObject([NSObject()], identifier: "a")
    #expect(errors.all.count == 1, "neither a property list nor archived")
    #expect(wormhole.message(withIdentifier: "a") == nil)
    try container.value("wormhole/a").replace(withBytes: Array("garbage".utf8))
    #expect(wormhole.message(withIdentifier: "a") == nil)
    #expect(
      errors.all.count == 2 && errors.all[1].contains(container.value("wormhole/a").path),
      "\(errors.all)")
    let nowhere = MMWormhole(applicationGroupIdentifier: nil, optionalDirectory: nil)
    nowhere.errorHandler = { errors.add($0) }
    nowhere.passMessageObject(1, identifier: "a")
    nowhere.listenForMessage(withIdentifier: "a") { [received] in received.add($0) }
    #expect(errors.all.count == 4)
  }

  @Test("also reports a damaged message to the error handler when it listens")
  func damagedMessage() throws {
    let errors = Errors()
    wormhole.errorHandler = { errors.add($0) }
    wormhole.listenForMessage(withIdentifier: "a") { [received] in received.add($0) }
    try container.value("wormhole/a").replace(withBytes: Array("garbage".utf8))
    try eventually("it is reported") { errors.all.count == 1 }
    wormhole.passMessageObject(1, identifier: "a")
    try eventually("the next is delivered") { received.all == ["1"] }
  }

  @Test("distinguishes identifiers by their bytes, even if Swift strings are equal")
  func bytes() throws {
    let others = Recorder()
    wormhole.listenForMessage(withIdentifier: "\u{e9}") { [received] in received.add($0) }
    wormhole.listenForMessage(withIdentifier: "e\u{301}") { others.add($0) }
    wormhole.passMessageObject(1, identifier: "\u{e9}")
    wormhole.passMessageObject(2, identifier: "e\u{301}")
    try eventually("each is delivered") { received.all == ["1"] && others.all == ["2"] }
  }

  @Test("stores messages with its messenger, and announces them as the messenger decides")
  func customMessenger() throws {
    let messenger = Memory()
    wormhole.wormholeMessenger = messenger
    wormhole.listenForMessage(withIdentifier: "a") { [received] in received.add($0) }
    wormhole.passMessageObject("one", identifier: "a")
    try eventually("it is delivered") { received.all == ["one"] }
    #expect(wormhole.message(withIdentifier: "a") as? String == "one")
    #expect(try container.value("wormhole/a").read() == nil, "nothing is stored in the container")
    wormhole.listenForMessage(withIdentifier: "quiet") { [received] in received.add($0) }
    wormhole.passMessageObject("quiet", identifier: "quiet")
    try container.value("wormhole/a").replace(with: "stored")
    wormhole.passMessageObject("two", identifier: "a")
    try eventually("only the announced one is delivered") { received.all == ["one", "two"] }
    wormhole.clearMessageContents(forIdentifier: "a")
    #expect(wormhole.message(withIdentifier: "a") == nil)
    wormhole.clearAllMessageContents()
    #expect(wormhole.message(withIdentifier: "quiet") == nil)
  }

  private final class Memory: NSObject, MMWormholeTransiting {
    private let messages = Mutex<[String: String]>([:])
    func writeMessageObject(
      _ messageObject: (any NSCoding)?, forIdentifier identifier: String
    ) -> Bool {
      let text = messageObject as? String
      messages.withLock { $0[identifier] = text }
      return identifier != "quiet"
    }
    func messageObject(forIdentifier identifier: String?) -> (any NSCoding)? {
      messages.withLock { $0[identifier ?? ""] }
    }
    func deleteContent(forIdentifier identifier: String?) {
      messages.withLock { $0[identifier ?? ""] = nil }
    }
    func deleteContentForAllMessages() { messages.withLock { $0 = [:] } }
  }

  @Test("may be used while its last error handler is released")
  func handlerOwner() {
    // Any thread may use a wormhole, although it is not Sendable, as the original is not.
    final class Owner: @unchecked Sendable {
      let wormhole: MMWormhole
      let ended: Errors
      init(_ wormhole: MMWormhole, _ ended: Errors) {
        self.wormhole = wormhole
        self.ended = ended
      }
      deinit {
        ended.add(CancellationError())
        wormhole.errorHandler?(CancellationError())
      }
    }
    let ended = Errors()
    let owner = Owner(wormhole, ended)
    wormhole.errorHandler = { [owner] _ in withExtendedLifetime(owner) {} }
    _ = consume owner
    wormhole.errorHandler = { ended.add($0) }
    #expect(ended.all.count == 2)
  }
}
