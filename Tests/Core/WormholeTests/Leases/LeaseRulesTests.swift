import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import Wormhole

/// Rules 1, 2, 4 and 5 of RulesOfTheLease.md. In each test one rule alone prevents a loss.
@Suite("A lease", .blocking)
struct LeaseRulesTests {
  let scene: LeaseScene
  var value: PlainValue { scene.value }

  init() throws { scene = try LeaseScene() }

  /// A request that knows its site by the lease, as every change of a value does.
  private func request(at site: LeaseSite) -> LeaseRequest {
    LeaseRequest(site: site, term: SharedContainer.standardTerm, deadline: .now + .seconds(20))
  }

  /// Returns whether the lease is free now.
  private func isFree() throws -> Bool {
    try LeaseScene.isWaiting(try scene.request()) == false
  }

  @Test("is free when its holder ends, however long its site is kept")
  func siteIsKept() throws {
    let site = try value.directory.leaseSite(protecting: value.fileName)
    var lease: Lease? = try request(at: site).run()
    #expect(try lease != nil && !isFree())
    lease = nil
    #expect(try isFree())
    withExtendedLifetime(site) {}
  }

  #if DEBUG
    @Test("is free when its request fails after locking it, however long its site is kept")
    func requestFails() throws {
      let site = try value.directory.leaseSite(protecting: value.fileName)
      let plan = Faults.Plan { call, _ in call == .openat ? .fail(.tooManyOpenFiles) : .proceed }
      #expect(throws: Errno.tooManyOpenFiles) {
        try Faults.$plan.withValue(plan) { _ = try request(at: site).run() }
      }
      #expect(try isFree())
      withExtendedLifetime(site) {}
    }
  #endif

  // this process                          another
  // waits for a lease that another holds
  //                                       is taken away: its directory is renamed, not removed yet
  //                                       ends: the old directory's lock is free
  // must not take that one
  @Test("that was renamed away has no holder, even if its lock is free (rule 1)")
  func renamedAway() throws {
    let holder = try scene.acquire(term: .seconds(600))
    let waiting = try scene.request()
    guard try LeaseScene.isWaiting(waiting) else {
      Issue.record("the lease is held")
      return
    }
    try scene.move("held", to: "broken-b")
    #expect(throws: WormholeError.self, "renamed is lost, though not removed") {
      try holder.confirm()
    }
    holder.end()
    let late = try LeaseScene.finish(waiting)
    try late.confirm()
    late.end()
    #expect(scene.litter == ["held"], "\(scene.directory.listing)")
  }

  // A                                  B                      this process
  // add 1, stopped before call n
  //                                    add 10, holds: it has read
  // continues, waits or is done
  //                                    publishes
  @Test("entered by its late holder never becomes its successor's (rule 2)")
  func lateEntry() throws {
    let calls = try Participant(scene.directory.path).calls(of: "add k 0")
    for place in 0..<calls {
      let before = try #require(try value.read()?.int64Value)
      let a = try Participant(scene.directory.path)
      let b = try Participant(scene.directory.path)
      try a.tell("stop \(place) add k 1")
      try a.waitUntilStopped()
      #expect(try b.ask("long k 10") == "holding")
      let isPublished = try value.read() == .integer(before + 1)
      try a.send(.continue)
      if isPublished {
        #expect(try a.answer() == "done")
      } else {
        try eventually("it waits for its successor, or has published") {
          try a.waitsForLease(of: "k", in: scene.directory) || value.read() != .integer(before)
        }
      }
      #expect(try b.ask("go") == "done")
      if !isPublished { #expect(try a.answer() == "done") }
      #expect(try value.read() == .integer(before + 11), "stopped before call \(place)")
    }
  }

  @Test("that was taken over lets its late holder neither replace nor remove (rules 2 and 4)")
  func lateHolder() throws {
    let value = value
    let overtaking: [(PropertyListValue?, @Sendable () throws -> Void)] = [
      (5, { try value.replace(with: 5) }), (nil, { try value.remove() }),
    ]
    for (left, overtake) in overtaking {
      for new: PropertyListValue? in [7, nil] {
        for durability in [Durability.standard, .durable] {
          try value.replace(with: 0)
          let error = #expect(throws: WormholeError.self) {
            try value.update(
              durability: durability, term: .milliseconds(1), repeatsAfterLoss: false
            ) { content in
              try overtake()
              content = new
            }
          }
          #expect(error?.code == .leaseLost)
          #expect(error?.holder?.processID == Program.processID)
          #expect(try value.read() == left)
        }
      }
    }
    #expect(scene.litter == ["held"], "\(scene.directory.listing)")
  }

  @Test("that has waiters is swept of its killed holder's entries")
  func killedBeforeWaiters() throws {
    let holder = try Participant(scene.directory.path)
    #expect(try holder.ask("long k 1") == "holding")
    let waiting = try scene.request()
    guard try LeaseScene.isWaiting(waiting) else {
      Issue.record("the lease is held")
      return
    }
    try holder.send(.kill)
    #expect(try holder.wait() == .killed(signal: 9))
    try LeaseScene.finish(waiting).end()
    #expect(scene.litter == ["held"], "\(scene.directory.listing)")
  }

  @Test("is marked clean only when every older one is removed, wherever its holder dies (rule 5)")
  func markedLast() throws {
    var place = 0
    var hasEnded = false
    while !hasEnded {
      try scene.removeMark()
      try makeDirectory(scene.lease + "/broken-b")
      try scene.make("broken-b/x-1-1-1-1-1-a", containing: "late")
      let victim = try Participant(scene.directory.path)
      hasEnded = try !victim.dies(of: "die \(place) set k 1")
      if try scene.names(in: "held").contains("clean") {
        #expect(!(try scene.names().contains("broken-b")), "killed before call \(place)")
      }
      try value.replace(with: 0)
      #expect(scene.litter == ["held"], "\(scene.directory.listing)")
      place += 1
    }
    #expect(place > 10)
  }

  @Test("reports a takeover to its late holder")
  func lateConfirmation() throws {
    let late = try scene.acquire(term: .milliseconds(1))
    try late.confirm()
    let writer = try scene.acquire()
    let error = #expect(throws: WormholeError.self) { try late.confirm() }
    #expect(error?.code == .leaseLost)
    #expect(error?.holder?.processID == Program.processID)
    writer.end()
  }

  @Test("sweeps prepared content of dead writers only")
  func sweepsTheDead() throws {
    let prepared = try PreparedContent(
      PublishedContent([1, 2, 3], nil), at: try scene.site(), durability: .standard)
    try scene.make("prepared-dead")
    let large = String(repeating: "x", count: PreparedContent.worthwhileBytes)
    try value.replace(with: .string(large))
    #expect(try scene.names().filter { $0.hasPrefix("prepared-") }.count == 1)
    #expect(try fileStatus(scene.directory.path + "/values/k/" + prepared.path).size == 3)
  }

  @Test("publishes even if a program without the lease created or removed the file meanwhile")
  func foreignHands() throws {
    let value = value
    try value.update { content in
      try removeFile(value.path)
      content = 1
    }
    #expect(try value.read() == 1)
    try value.remove()
    try value.update { content in
      try FileDescriptor.open(value.path, [.writeOnly, .create], mode: 0o600).close()
      content = 2
    }
    #expect(try value.read() == 2)
    #expect(scene.litter == ["held"], "\(scene.directory.listing)")
  }

  @Test("removes a value, and puts aside a directory that was planted in its place")
  func removesPlanted() throws {
    try value.remove()
    try makeDirectory(value.path)
    try FileDescriptor.open(value.path + "/precious", [.writeOnly, .create]).close()
    #expect(try value.remove())
    #expect(try value.read() == nil)
    #expect(scene.directory.listing.contains("/precious"), "\(scene.directory.listing)")
  }

  @Test("never puts aside a value that was published meanwhile, or a file outside the container")
  func quarantine() throws {
    let site = try scene.site()
    let error = #expect(throws: Errno.self) {
      try site.home.setAside(FileName("value.plist/"), at: try site.directory())
    }
    #expect(error == .notDirectory)
    #expect(try value.read() == 0)
    let elsewhere = try TemporaryDirectory()
    try scene.directory.shell("rm -rf quarantine; ln -s '\(elsewhere.path)' quarantine")
    try value.remove()
    try makeDirectory(value.path)
    #expect(throws: WormholeError.self) { try value.remove() }
    #expect(try FileDescriptor.open(elsewhere.path, .readOnly).entries().isEmpty)
  }

  @Test("is cleared of what a network file system has renamed, once that was copied to a local one")
  func keptOpen() throws {
    try scene.removeMark()
    for name in ["broken-b", "held"] {
      if name == "broken-b" { try makeDirectory(scene.lease + "/" + name) }
      for hidden in [".nfs0001", ".fuse_hidden0001"] {
        try scene.make(name + "/" + hidden, containing: "")
      }
    }
    try value.replace(with: 1)
    #expect(scene.litter == ["held"], "\(scene.directory.listing)")
  }

  @Test("names its taker only if the taker's note is about this holder")
  func otherNote() throws {
    let first = try scene.acquire(term: .milliseconds(1))
    try scene.acquire().end()
    #expect(throws: WormholeError.self) { try first.confirm() }
    #expect(try scene.names().contains("taken.plist"))
    let second = try scene.acquire()
    try scene.move("held", to: "broken-b")
    let error = #expect(throws: WormholeError.self) { try second.confirm() }
    #expect(error?.code == .leaseLost && error?.holder == nil, "\(String(describing: error))")
  }
}
