import Dispatch
import Synchronization
import Testing
import WormholePropertyLists
import WormholeTestSupport
import WormholeWorkshop

@testable import Wormhole
@testable import WormholeInspection
@testable import WormholeSystem
@testable import WormholeToolkit

@Suite("A mailbox", .blocking, .bothEngines) struct MailboxTests {
  /// The way of messages in a directory; etcd has one.
  enum Way: CaseIterable {
    case wire, files
    /// Now one and now the other.
    case both
  }

  /// The delivered entries, in order.
  private final class Delivered: Sendable {
    private let values = Mutex<[PropertyListValue]>([])
    func add(_ value: PropertyListValue) { values.withLock { $0.append(value) } }
    var all: [PropertyListValue] { values.withLock { $0 } }
  }

  private func scene() throws -> (TemporaryDirectory, SharedContainer, any Mailbox, Delivered) {
    let directory = try TemporaryDirectory()
    let container = try directory.container()
    let delivered = Delivered()
    return (directory, container, try container.makeMailbox { delivered.add($0) }, delivered)
  }

  @Test(
    "Each sender's order is kept, and each entry is delivered once, even by complete looks",
    arguments: Way.allCases)
  func order(_ way: Way) throws {
    let (directory, container, mailbox, delivered) = try scene()
    let isOnDirectory = TestEngine.current == .directory
    var observation = isOnDirectory && way == .files ? MailboxObservation(of: container.root) : nil
    #expect((observation != nil) == (isOnDirectory && way == .files))
    let (senders, each) = (4, 150)
    let group = DispatchGroup()
    for sender in 0..<senders {
      let outlet = try #require(container.mailboxWriter(to: mailbox.address))
      Blocking.queue().async(group: group) {
        for number in 0..<each {
          do {
            _ = try outlet.post([
              "sender": PropertyListValue(sender), "n": PropertyListValue(number),
            ])
          } catch {
            Issue.record(error)
          }
        }
      }
    }
    // As an overflow of the kernel's queue would.
    while group.wait(timeout: .now()) == .timedOut {
      mailbox.catchUp()
      guard isOnDirectory, way == .both else { continue }
      observation = observation == nil ? MailboxObservation(of: container.root) : nil
    }
    observation = nil
    try eventually("all are delivered") { delivered.all.count >= senders * each }
    #expect(delivered.all.count == senders * each)
    for sender in 0..<senders {
      let numbers = delivered.all.filter { $0["sender"]?.intValue == sender }.map {
        $0["n"]?.intValue
      }
      #expect(numbers == (0..<each).map { Optional($0) })
    }
    guard isOnDirectory else { return }
    let path = directory.path + "/mailboxes/" + mailbox.address
    try eventually("only the lock is left") {
      try FileDescriptor.open(path, [.readOnly, .directory]).entries().map(\.name.text).sorted()
        == [
          "owner", "wire",
        ]
    }
  }

  @Test(
    "A look finds entries from before the watch, and entries without an event",
    .onlyDirectories("it writes a file"))
  func look() throws {
    let (directory, container, mailbox, delivered) = try scene()
    let outlet = try #require(container.mailboxWriter(to: mailbox.address))
    // Linked in, which is no event that the mailbox asks for.
    #expect(try outlet.post(1) == .posted)
    try eventually("it is delivered") { delivered.all == [1] }
    let path = directory.path + "/mailboxes/" + mailbox.address
    let bytes = try PropertyListValue.integer(2).binaryBytes()
    let file = try FileDescriptor.open(directory.path + "/other", [.writeOnly, .create])
    try file.writeAll(bytes)
    try link(
      directory.path + "/other", at: Directory.current,
      to: path + "/0000000000000001-aa-1-\(bytes.count).plist", at: Directory.current)
    mailbox.catchUp()
    try eventually("it is delivered") { delivered.all == [1, 2] }
  }

  @Test(
    "Entries that wait because of a lack of descriptors are delivered in their order",
    .onlyDirectories("the entries are files"))
  func descriptors() throws {
    let directory = try TemporaryDirectory()
    let other = try Participant(directory.path)
    let address = try String(other.ask("mailbox-make 1").dropFirst("address ".count))
    let outlet = try #require(directory.container().mailboxWriter(to: address))
    let count = 300
    for number in 0..<count {
      if number % 10 == 0 {
        #expect(try other.ask("mailbox-descriptors \(number % 20 == 0 ? 3 : 200)") == "done")
      }
      #expect(try outlet.post(PropertyListValue(number)) == .posted)
    }
    #expect(try other.ask("mailbox-descriptors 200") == "done")
    try eventually("all are delivered") {
      try other.ask("mailbox-heard all") == "\(Array(0..<count))"
    }
  }

  @Test("A post into a closed or nonexistent mailbox fails")
  func gone() throws {
    let (directory, container, mailbox, _) = try scene()
    let outlet = try #require(container.mailboxWriter(to: mailbox.address))
    #expect(try outlet.post(1) == .posted)
    mailbox.end(asDeath: false)
    #expect(try outlet.post(2) == .gone)
    if TestEngine.current == .directory {
      #expect(
        try FileDescriptor.open(directory.path + "/mailboxes", [.readOnly, .directory])
          .entries().isEmpty)
    }
    #expect(container.mailboxWriter(to: "../values") == nil)
    #expect(container.mailboxWriter(to: "") == nil)
  }

  @Test("With too many waiting entries the sender is refused, and accepted again afterwards")
  func full() throws {
    let (directory, container, mailbox, delivered) = try scene()
    let other = try Participant(directory.path)
    let address = try String(other.ask("mailbox-make 1").dropFirst("address ".count))
    try other.send(.stop)
    try other.waitUntilStopped()
    // What waits in a socket does not count.
    let observation =
      TestEngine.current == .directory ? MailboxObservation(of: container.root) : nil
    let outlet = try #require(
      container.mailboxWriter(to: address, entries: 8, bytes: 1 << 20))
    // Few, because on etcd a process that is stopped for longer than its session loses its mailbox.
    for _ in 0..<8 { #expect(try outlet.post(1) == .posted) }
    #expect(try outlet.post(1) == .full)
    let large = PropertyListValue.string(String(repeating: "x", count: 2 << 20))
    #expect(try outlet.post(large) == .full)
    try other.send(.continue)
    try eventually("there is room again") { try outlet.post(1) == .posted }
    withExtendedLifetime((mailbox, delivered, observation)) {}
  }

  @Test(
    "What waits for a stopped process, on the wire and as files, is delivered in its order",
    .onlyDirectories("etcd has no wire"))
  func stopped() throws {
    let directory = try TemporaryDirectory()
    let other = try Participant(directory.path)
    let address = try String(other.ask("mailbox-make 1").dropFirst("address ".count))
    let outlet = try #require(
      directory.container().mailboxWriter(to: address, entries: 32))
    #expect(try outlet.post(0) == .posted)
    try eventually("it is delivered") { try other.ask("mailbox-heard all") == "[0]" }
    try other.send(.stop)
    try other.waitUntilStopped()
    var count = 1
    while try outlet.post(PropertyListValue(count)) == .posted { count += 1 }
    // The files are full, and more than these were taken: the wire's.
    #expect(count > 33)
    let path = directory.path + "/mailboxes/" + address
    #expect(try FileDescriptor.open(path, [.readOnly, .directory]).entries().count == 32 + 2)
    try other.send(.continue)
    try eventually("all are delivered") {
      try other.ask("mailbox-heard all") == "\(Array(0..<count))"
    }
  }

  @Test(
    "Datagrams of another program change nothing", .onlyDirectories("etcd has no wire"),
    arguments: [0, 1, 24, 25, 26, 300, MailboxWire.maximumBytes + 100])
  func hostile(_ size: Int) throws {
    let (directory, container, mailbox, delivered) = try scene()
    let path = directory.path + "/mailboxes/" + mailbox.address + "/wire"
    let sender = try FileDescriptor.open(path, .pathOnly).datagramSender()
    var generator = SeededGenerator(seed: UInt64(size))
    for version: UInt8 in [0, 1, 2] {
      var bytes = (0..<size).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
      if !bytes.isEmpty { bytes[0] = version }
      try eventually("there is room") {
        do throws(Errno) {
          try sender.sendDatagram(bytes)
          return true
        } catch {
          guard error == .wouldBlock else { throw error }
          return false
        }
      }
    }
    let outlet = try #require(container.mailboxWriter(to: mailbox.address))
    #expect(try outlet.post(1) == .posted)
    try eventually("it is delivered") { delivered.all == [1] }
  }

  @Test(
    "Without a wire, files are the way", .onlyDirectories("etcd has no wire"),
    arguments: ["missing", "foreign", "unused", "a link"])
  func wireless(_ state: String) throws {
    let (directory, container, mailbox, delivered) = try scene()
    // The path may be too long for the address of a socket.
    let place = try FileDescriptor.open(
      directory.path + "/mailboxes/" + mailbox.address, [.readOnly, .directory])
    let path = "/proc/self/fd/\(place.rawValue)/wire"
    try removeFile(path, at: Directory.current)
    let outside = try FileDescriptor.open(directory.path, [.readOnly, .directory])
    let other = "/proc/self/fd/\(outside.rawValue)/other"
    let receiver = try FileDescriptor.datagramSocket(receivingAt: other)
    switch state {
    case "foreign": _ = try FileDescriptor.open(path, [.writeOnly, .create])
    // Its process has ended.
    case "unused": _ = try FileDescriptor.datagramSocket(receivingAt: path)
    case "a link":
      let target = FileName(directory.path + "/other")
      try makeSymbolicLink(FileName(path), at: Directory.current, target: target)
    default: break
    }
    let outlet = try #require(container.mailboxWriter(to: mailbox.address))
    for number in 1...3 { #expect(try outlet.post(PropertyListValue(number)) == .posted) }
    try eventually("they are delivered") { delivered.all == [1, 2, 3] }
    #expect(try receiver.receiveDatagram(maximumBytes: 100) == nil)
    withExtendedLifetime(place) {}
    withExtendedLifetime(outside) {}
  }

  @Test("The end of an owner is reported once, even if it is killed")
  func end() throws {
    let (directory, container, mailbox, _) = try scene()
    let ended = Mutex(0)
    let observation = try container.callingEngine.observeEnd(ofMailbox: mailbox.address) {
      ended.withLock { $0 += 1 }
    }
    #expect(observation != nil)
    // Other looks cause no event.
    #expect(try MailboxDirectory.dead(in: container.root).isEmpty)
    #expect(ended.withLock { $0 } == 0)
    mailbox.end(asDeath: false)
    try eventually("its end is reported") { ended.withLock { $0 } == 1 }
    let other = try Participant(directory.path)
    let address = try String(other.ask("mailbox-make 1").dropFirst("address ".count))
    let second = try container.callingEngine.observeEnd(ofMailbox: address) {
      ended.withLock { $0 += 1 }
    }
    #expect(second != nil)
    try other.end()
    try eventually("its end is reported") { ended.withLock { $0 } == 2 }
    #expect(try container.callingEngine.observeEnd(ofMailbox: address) {} == nil)
    if TestEngine.current == .directory {
      #expect(try MailboxDirectory.dead(in: container.root) == ["mailboxes/" + address])
    }
    try container.sweepMailboxes()
    #expect(try MailboxDirectory.dead(in: container.root).isEmpty)
    withExtendedLifetime((observation, second)) {}
  }

  @Test(
    "A mailbox whose directory was removed is created again, under its address",
    .onlyDirectories("it removes the directory"))
  func removed() throws {
    let (directory, container, mailbox, delivered) = try scene()
    let outlet = try #require(container.mailboxWriter(to: mailbox.address))
    let remove = try ChildProcess("rm", ["-rf", directory.path + "/mailboxes"])
    _ = try remove.wait(until: soon)
    try eventually("it is there again") { try outlet.post(1) == .posted }
    try eventually("it is delivered") { delivered.all == [1] }
    try container.sweepMailboxes()
    #expect(try outlet.post(2) == .posted)
    try eventually("it is delivered") { delivered.all == [1, 2] }
  }

  /// Plants a foreign, live mailbox in the mailbox's place: creating it again fails as long as the
  /// foreign one holds its lock.
  ///
  /// - Returns: Whether the monitor was creating the mailbox again when its owner released it.
  private func isLeftWhileMade(_ round: Int, in directory: TemporaryDirectory) throws -> Bool {
    var mailbox: (any Mailbox)? = try directory.container().makeMailbox { _ in }
    weak let former = mailbox
    let address = try #require(mailbox?.address)
    let stranger = directory.path + "/stranger-\(round)"
    try makeDirectory(stranger)
    let lock = try FileDescriptor.open(stranger + "/owner", [.readWrite, .create])
    #expect(try lock.tryLock(.exclusive))
    let mailboxes = directory.path + "/mailboxes"
    try rename(
      stranger, at: Directory.current, to: mailboxes + "/" + address, at: Directory.current,
      .exchange)
    let names = {
      try FileDescriptor.open(mailboxes, [.readOnly, .directory]).entries().map(\.name.text)
    }
    try eventually("the monitor makes it") { try names().contains { $0.hasPrefix(".new-") } }
    mailbox = nil
    let isMade = former != nil
    try lock.unlock()
    try eventually("it is gone") { try former == nil && names().isEmpty }
    return isMade
  }

  // Its end ends its watch, which needs the monitor's lock, so the lock must not be held while a
  // mailbox is created.
  @Test(
    "The last reference to a mailbox may be released while the monitor creates it again",
    .onlyDirectories("it plants a directory"))
  func leftWhileMade() throws {
    let directory = try TemporaryDirectory()
    var round = 0
    try eventually("the monitor has the last reference") {
      round += 1
      return try isLeftWhileMade(round, in: directory)
    }
  }

  @Test(
    "Foreign names are not entries", .onlyDirectories("there is no container"),
    arguments: [
      "owner", "staged-1", "1-a-1-1.plist", "0000000000000001-a-1-1",
      "0000000000000001-a-1.plist",
      "0000000000000001-a-1-01.plist", "0000000000000001--1-1.plist",
      "0000000000000001-a-0-1.plist",
      "000000000000000g-a-1-1.plist", "0000000000000001-a-1--1.plist",
      "0000000000000001-a-1-99999999999.plist", "000000000000000A-a-1-1.plist",
    ])
  func names(_ name: String) {
    #expect(EntryFile(name) == nil)
    let entry = EntryFile(order: 1, sender: "a", count: 1, bytes: 1)
    #expect(EntryFile(entry.text) == entry)
  }
}
