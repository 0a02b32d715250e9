import Dispatch
import PropertyLists
import Synchronization
import SystemCalls
import TestScopes
import TestSupport
import Testing

@testable import AppGroup

@Suite(.blocking) struct MailboxTests {
  /// What was delivered, in its order.
  private final class Delivered: Sendable {
    private let values = Mutex<[PropertyListValue]>([])
    func add(_ value: PropertyListValue) { values.withLock { $0.append(value) } }
    var all: [PropertyListValue] { values.withLock { $0 } }
  }

  private func scene() throws -> (TemporaryDirectory, SharedContainer, Mailbox, Delivered) {
    let directory = try TemporaryDirectory()
    let container = try directory.container()
    let delivered = Delivered()
    return (directory, container, try Mailbox(in: container) { delivered.add($0.value) }, delivered)
  }

  @Test("Each sender's order is kept, each entry delivered once, also by looks at everything")
  func order() throws {
    let (directory, container, mailbox, delivered) = try scene()
    let (senders, each) = (4, 150)
    let group = DispatchGroup()
    for sender in 0..<senders {
      let outlet = try #require(MailboxOutlet(in: container, to: mailbox.address))
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
    while group.wait(timeout: .now()) == .timedOut { mailbox.hear(.everything) }
    try eventually("all are delivered") { delivered.all.count >= senders * each }
    #expect(delivered.all.count == senders * each)
    for sender in 0..<senders {
      let numbers = delivered.all.filter { $0["sender"]?.intValue == sender }.map {
        $0["n"]?.intValue
      }
      #expect(numbers == (0..<each).map { Optional($0) })
    }
    let path = directory.path + "/mailboxes/" + mailbox.address
    try eventually("only the lock is left") {
      try FileDescriptor.open(path, [.readOnly, .directory]).entries().map(\.name.text) == ["owner"]
    }
  }

  @Test("What lies there before the watch, and what events do not tell of, is found by a look")
  func look() throws {
    let (directory, container, mailbox, delivered) = try scene()
    let outlet = try #require(MailboxOutlet(in: container, to: mailbox.address))
    // Moved in by a link, which is no event that the mailbox asks for.
    #expect(try outlet.post(1) == .posted)
    try eventually("it is delivered") { delivered.all == [1] }
    let path = directory.path + "/mailboxes/" + mailbox.address
    let bytes = try PropertyListValue.integer(2).binaryBytes()
    let file = try FileDescriptor.open(directory.path + "/other", [.writeOnly, .create])
    try file.writeAll(bytes)
    try link(
      directory.path + "/other", at: Directory.current,
      to: path + "/0000000000000001-aa-\(bytes.count).plist", at: Directory.current)
    mailbox.hear(.everything)
    try eventually("it is delivered") { delivered.all == [1, 2] }
  }

  @Test("Nobody posts into a mailbox that is closed, or that never was")
  func gone() throws {
    let (directory, container, mailbox, _) = try scene()
    let outlet = try #require(MailboxOutlet(in: container, to: mailbox.address))
    #expect(try outlet.post(1) == .posted)
    mailbox.close()
    #expect(try outlet.post(2) == .gone)
    #expect(
      try FileDescriptor.open(directory.path + "/mailboxes", [.readOnly, .directory])
        .entries().isEmpty)
    #expect(MailboxOutlet(in: container, to: "../values") == nil)
    #expect(MailboxOutlet(in: container, to: "") == nil)
  }

  @Test("Too much waiting: the sender is refused, and served again afterwards")
  func full() throws {
    let (directory, container, mailbox, delivered) = try scene()
    let other = try Participant(directory.path)
    #expect(try other.ask("mailbox-make 1").hasPrefix("address "))
    try other.send(.stop)
    try other.waitUntilStopped()
    let names = try FileDescriptor.open(directory.path + "/mailboxes", [.readOnly, .directory])
      .entries().map(\.name.text).filter { $0 != mailbox.address }
    let limits = MailboxOutlet.Limits(entries: 32, bytes: 1 << 20)
    let outlet = try #require(MailboxOutlet(in: container, to: names[0], limits: limits))
    for _ in 0..<32 { #expect(try outlet.post(1) == .posted) }
    #expect(try outlet.post(1) == .full)
    let large = PropertyListValue.string(String(repeating: "x", count: 2 << 20))
    #expect(try outlet.post(large) == .full)
    try other.send(.continue)
    try eventually("there is room again") { try outlet.post(1) == .posted }
    withExtendedLifetime(delivered) {}
  }

  @Test("The end of an owner is told once, also of one that is killed")
  func end() throws {
    let (directory, container, mailbox, _) = try scene()
    let ended = Mutex(0)
    let observation = try MailboxObservation(in: container, of: mailbox.address) {
      ended.withLock { $0 += 1 }
    }
    #expect(observation != nil)
    // Others who look tell nobody.
    #expect(try MailboxDirectory.dead(in: container.root).isEmpty)
    #expect(ended.withLock { $0 } == 0)
    mailbox.close()
    try eventually("its end is told") { ended.withLock { $0 } == 1 }
    let other = try Participant(directory.path)
    let address = try String(other.ask("mailbox-make 1").dropFirst("address ".count))
    let second = try MailboxObservation(in: container, of: address) { ended.withLock { $0 += 1 } }
    #expect(second != nil)
    try other.end()
    try eventually("its end is told") { ended.withLock { $0 } == 2 }
    #expect(try MailboxObservation(in: container, of: address) {} == nil)
    #expect(try MailboxDirectory.dead(in: container.root) == ["mailboxes/" + address])
    try container.sweepMailboxes()
    #expect(try MailboxDirectory.dead(in: container.root).isEmpty)
    withExtendedLifetime((observation, second)) {}
  }

  @Test("A mailbox whose directory was removed is made again, under its address")
  func removed() throws {
    let (directory, container, mailbox, delivered) = try scene()
    let outlet = try #require(MailboxOutlet(in: container, to: mailbox.address))
    let remove = try ChildProcess("rm", ["-rf", directory.path + "/mailboxes"])
    _ = try remove.wait(until: .now + .seconds(30))
    try eventually("it is there again") { try outlet.post(1) == .posted }
    try eventually("it is delivered") { delivered.all == [1] }
    try container.sweepMailboxes()
    #expect(try outlet.post(2) == .posted)
    try eventually("it is delivered") { delivered.all == [1, 2] }
  }

  /// A stranger at the mailbox's place, alive: making it again goes on as long as that one has its lock.
  ///
  /// - Returns: whether the monitor was making the mailbox again when its user left it.
  private func isLeftWhileMade(_ round: Int, in directory: TemporaryDirectory) throws -> Bool {
    var mailbox: Mailbox? = try Mailbox(in: directory.container()) { _ in }
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

  // Its end ends its watch, which needs the monitor's lock: it is not held while a mailbox is made.
  @Test("The last reference to a mailbox may go while the monitor makes it again")
  func leftWhileMade() throws {
    let directory = try TemporaryDirectory()
    var round = 0
    try eventually("the monitor has the last reference") {
      round += 1
      return try isLeftWhileMade(round, in: directory)
    }
  }

  @Test(
    "Names that are no entries are none",
    arguments: [
      "owner", "staged-1", "1-a-1.plist", "0000000000000001-a-1", "0000000000000001-a-01.plist",
      "0000000000000001--1.plist", "0000000000000001-a-b-1.plist", "000000000000000g-a-1.plist",
      "0000000000000001-a--1.plist", "0000000000000001-a-99999999999.plist",
      "000000000000000A-a-1.plist",
    ])
  func names(_ name: String) {
    #expect(MailboxEntryName(FileName(name)) == nil)
    let entry = MailboxEntryName(stamp: 1, sender: "a", bytes: 1)
    #expect(MailboxEntryName(FileName(entry.text)) == entry)
  }
}
