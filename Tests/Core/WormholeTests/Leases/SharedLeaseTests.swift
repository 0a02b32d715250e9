import Synchronization
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

@Suite("Shared leases", .blocking)
struct SharedLeaseTests {
  let directory: TemporaryDirectory
  let container: SharedContainer

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
    try container.value("k").replace(with: 0)
  }

  private func site() throws -> LeaseSite {
    let value = container.value("k")
    return LeaseSite(
      directory: SharedDescriptor(try value.directory.openOrMake()), home: container.root,
      path: value.path)
  }

  private func acquire(
    _ mode: LockMode, within limit: Duration = .seconds(20), term: Duration = Value.standardTerm
  ) throws -> Lease {
    try LeaseRequest(site: try site(), mode: mode, term: term, deadline: .now + limit).run()
  }

  /// Keeps a lease alive until it is ended.
  private final class Held: Sendable {
    private let lease: Mutex<Lease?>
    init(_ lease: Lease) { self.lease = Mutex(lease) }
    func end() { lease.withLock { $0 = nil } }
  }

  @Test("are held by many at once, and exclude a writer until the last has ended")
  func overlap() throws {
    let first = Held(try acquire(.shared))
    let second = Held(try acquire(.shared))
    #expect(throws: AppGroupError.self) { try acquire(.exclusive, within: .milliseconds(1)) }
    first.end()
    #expect(throws: AppGroupError.self) { try acquire(.exclusive, within: .milliseconds(1)) }
    second.end()
    // Not "only if it is free now": a child that another test is starting has copies of all
    // descriptors until it executes its program, and a lock is free only when the last one is
    // closed.
    let writer = Held(try acquire(.exclusive))
    #expect(throws: AppGroupError.self) { try acquire(.shared, within: .milliseconds(1)) }
    writer.end()
    #expect(Litter.entries(of: "k", in: directory) == ["held"], "\(directory.listing)")
  }

  private var isAnnounced: Bool {
    get throws {
      let lease = directory.path + "/values/k/lease"
      let entries = try FileDescriptor.open(lease, [.readOnly, .directory]).entries()
      return entries.contains { $0.name.hasPrefix("waiting-") }
    }
  }

  // reader 1         writer (B)           reader 2
  // holds
  //                  waits, announced
  //                                       finds the gate closed: waits
  // ends
  //                  has it, adds, ends
  //                                       may
  @Test("do not starve a writer: new readers queue behind one that waits")
  func gate() throws {
    let reader = Held(try acquire(.shared))
    let writer = try Participant(directory.path)
    try writer.tell("add k 1")
    try eventually("the writer has announced itself") { try isAnnounced }
    #expect(throws: AppGroupError.self, "the lease is shared, yet the gate is closed") {
      try acquire(.shared, within: .milliseconds(1))
    }
    reader.end()
    #expect(try writer.answer() == "done")
    let next = Held(try acquire(.shared))
    #expect(try container.value("k").read() == 1)
    next.end()
  }

  @Test(
    "are not blocked by the gate of a suspended or killed writer",
    arguments: [
      Signal.stop, .kill,
    ])
  func abandonedGate(signal: Signal) throws {
    let reader = Held(try acquire(.shared, term: .seconds(600)))
    let writer = try Participant(directory.path)
    try writer.tell("add k 1")
    try eventually("the writer has announced itself") { try isAnnounced }
    try writer.send(signal)
    if signal == .stop { try writer.waitUntilStopped() }
    let second = Held(try acquire(.shared))
    reader.end()
    second.end()
    try writer.send(.continue)
    if signal == .stop { #expect(try writer.answer() == "done") }
    #expect(try container.value("k").read() == (signal == .stop ? 1 : 0))
    Held(try acquire(.shared)).end()
    #expect(Litter.entries(of: "k", in: directory) == ["held"], "\(directory.listing)")
  }

  @Test("report a takeover to their late holder")
  func confirm() throws {
    let late = try acquire(.shared, term: .milliseconds(1))
    try late.confirm()
    let writer = Held(try acquire(.exclusive))
    let error = #expect(throws: AppGroupError.self) { try late.confirm() }
    #expect(error?.code == .leaseLost)
    #expect(error?.holder?.processID == Program.processID)
    writer.end()
  }
}

@Suite("A lease's declaration", .blocking)
struct LeaseDeclarationTests {
  @Test("is a name with the holder, its start, and its term")
  func roundTrip() throws {
    let declaration = LeaseDeclaration(mode: .exclusive, term: .milliseconds(2_500))
    let read = try #require(LeaseDeclaration(FileName(bytes: Array(declaration.name.utf8))))
    #expect(read == declaration)
    #expect(read.identity == .current)
    #expect(read.term == .milliseconds(2_500))
    #expect(try #require(read.age) < .seconds(60))
  }

  @Test(
    "of any bytes is bounded or refused",
    arguments: [
      "", "clean", "x", "x-1-2-3-4-5", "x-1-2-3-4-5-6-7", "y-1-2-3-4-5-6", "x-zz-2-3-4-5-6",
      "x--2-3-4-5-6", "x-ffffffffffffffff-2-3-4-5-6", "xx-1-2-3-4-5-6",
    ])
  func nonsense(name: String) {
    #expect(LeaseDeclaration(FileName(bytes: Array(name.utf8))) == nil)
  }

  /// An hour of it counts, unless the holder is seen (ObservedTests).
  @Test("with an absurd term or beginning is read")
  func absurd() throws {
    let identity = ProcessIdentity.current
    let prefix =
      "x-" + String(identity.processID, radix: 16) + "-" + String(identity.startTicks, radix: 16)
      + "-" + String(identity.namespace, radix: 16) + "-"
    let endless = try #require(
      LeaseDeclaration(FileName(bytes: Array((prefix + "0-ffffffffffffffff-a").utf8))))
    #expect(endless.term == LeaseDeclaration.whileRunning)
    let future = try #require(
      LeaseDeclaration(FileName(bytes: Array((prefix + "ffffffffffffffff-5-a").utf8))))
    #expect(future.age == nil, "then only the observation counts")
  }
}
