import Testing
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

extension TransactionTests {
  @Test("Two names that Swift takes for equal are refused, because only one would be changed")
  func namesInTwoForms() throws {
    let names = ["\u{e9}", "e\u{301}"]
    for name in names { try container.value(name).replace(with: 1) }
    let isRefused = { (error: any Error) in (error as? WormholeError)?.code == .unsupportedValue }
    #expect(performing: { try container.update(names) { $0[names[0]] = 2 } }, throws: isRefused)
    #expect(performing: { try container.read(names) }, throws: isRefused)
    #expect(try names.map { try container.value($0).read() } == [1, 1])
  }

  #if DEBUG
    @Test(
      "shows its closure the values of one moment, even if its process was stopped between reading them",
      .onlyDirectories("the steps are system calls"), arguments: TriedSteps.shares)
    func stoppedWhileReading(share: Int) throws {
      try TriedSteps.each(of: share, moreThan: 15) { step in
        let scene = try TransactionTests()
        func setBoth(to number: Int64) throws {
          try scene.container.update(["a", "b"]) { values in
            for name in ["a", "b"] { values[name] = .integer(number) }
          }
        }
        try setBoth(to: 1)
        let late = try Participant(scene.directory.path)
        let isDone = try !late.stops(in: "stop \(step) alike a,b")
        try setBoth(to: 2)
        try late.send(.continue)
        #expect(try late.answer() == "done", "stopped before call \(step)")
        return !isDone
      }
    }

    @Test(
      "is not called abandoned before its first file, while its writer has the leases",
      .onlyDirectories("its own entry is planted"))
    func begun() throws {
      let writer = try Participant(directory.path)
      #expect(try writer.ask("hold a 1") == "holding")
      for path in ["/own", "/own/transactions", "/own/transactions/abc"] {
        try makeDirectory(directory.path + path)
      }
      #expect(try container.report().leftovers.isEmpty)
      #expect(try writer.ask("") == "done")
      try writer.end()
      #expect(try container.report().leftovers.map(\.kind) == [.abandonedChange])
      _ = try container.sweep()
      #expect(try litter() == [])
    }

    // An absent value looks the same at both looks if it existed in between.
    @Test(
      "Values that are read together existed together, whatever changes between two looks",
      .onlyDirectories("its calls are counted"))
    func together() throws {
      let names = ["a", "b", "c"]
      // It exists only while the others differ.
      let changes: [@Sendable (inout [String: PropertyListValue]) -> Void] = [
        { $0 = ["a": $0["c"] ?? 0, "c": $0["c"] ?? 0] },
        { $0 = ["a": $0["a"] ?? 0, "b": 1, "c": .integer(($0["c"]?.int64Value ?? 0) + 1)] },
      ]
      try container.update(names, changes[1])
      var (first, calls) = (0, 1)
      while first < calls {
        for second in stride(from: first + 1, through: calls, by: 2) {
          try container.update(names, changes[0])
          let plan = Faults.Plan { [container, first] _, index in
            guard index == first || index == second else { return .proceed }
            do {
              let change = changes[index == first ? 1 : 0]
              try Faults.$plan.withValue(nil) { try container.update(names, change) }
              return .proceed
            } catch {
              return .fail(.inputOutput)
            }
          }
          let found = try Faults.$plan.withValue(plan) { try container.read(names) }
          #expect(
            found["b"] != nil || found["a"] == found["c"],
            "changed before calls \(first) and \(second): \(found)")
          if first == 0, second == 1 { calls = min(plan.calls, 40) }
        }
        first += 1
      }
      #expect(calls > 12)
    }
  #endif

  // The first once took the note of the second for its own, and made it begin again.
  @Test(
    "A holder that is late does not end a later transaction",
    .onlyDirectories("it stages the notes"))
  func late() throws {
    let value = container.value("a")
    try value.replace(with: 1)
    let lease = try LeaseRequest(
      site: value.directory.leaseSite(protecting: value.fileName), term: .seconds(60),
      deadline: .now + .seconds(20)
    ).run()
    let handle = try container.root.handle()
    let at = handle.descriptor.rawValue
    let (late, later) = (Transaction(nonce: "1"), Transaction(nonce: "2"))
    for path in [NameKind.own, Transaction.directory, later.path] {
      try container.root.makeDirectoryIfMissing(path, at: at)
    }
    try container.root.access.createFile(later.open, at: at).close()
    let part = Transaction.Part(transaction: later, number: 0, kind: .replace)
    try lease.leave(lease.stageNote(part))
    try container.root.settle(lease, of: late)
    #expect(try exists(later.open, at: at))
    try container.root.settle(lease, of: later)
    #expect(try !exists(later.open, at: at))
    #expect(try value.read() == 1)
  }
}
