import Testing
import Wormhole
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@Suite("Entries sent .durable survive a power cut", .blocking, .enabled(if: !Disk.usable.isEmpty))
struct QueuedTests {
  @Test("Entries and receipts are there, even if an entry between them was cancelled")
  func survives() throws {
    for kind in Disk.usable + Disk.usableWithoutJournal {
      let found = try after(kind) { try $0() }
      #expect(found == [1, 2, 2], "\(kind)")
    }
  }

  // The detector must detect.
  #if DEBUG
    @Test("Without the fsyncs they are lost")
    func detects() throws {
      let lazy = Faults.Plan { call, _ in call == .fsync ? .skip : .proceed }
      for kind in Disk.usable + Disk.usableWithoutJournal {
        let found = try after(kind) { try Faults.$plan.withValue(lazy, operation: $0) }
        #expect(found != [1, 2, 2], "\(kind)")
      }
    }
  #endif

  @Test(
    "Other entries are there or gone, never damaged, and lost ones are never delivered")
  func standard() throws {
    for kind in Disk.usable {
      let disk = try Disk(kind)
      for isJournalWritten in [false, true] {
        let path = try disk.makeContainer()
        let receipt = try send(isJournalWritten, path)
        try disk.cutPower()
        try disk.restart()
        let container = try SharedContainer(path: path)
        let consumer = try container.queue("q").consume()
        var numbers: [Int] = []
        while let entry = try consumer.next(until: .now) {
          numbers.append(entry.payload.intValue ?? -1)
          try entry.acknowledge()
        }
        let comment = Comment(rawValue: "\(kind), journal \(isJournalWritten)")
        #expect(numbers.contains(0) && numbers.contains(22) == isJournalWritten, comment)
        #expect(numbers == numbers.sorted(), comment)
        let report = try container.report()
        // What never reached the disk is put aside, and reported.
        #expect(numbers.count + report.quarantine.count <= (isJournalWritten ? 24 : 23), comment)
        #expect(report.leftovers.isEmpty, comment)
        let outcomes = try container.queue("q").sender("a").outcomes()
        #expect(outcomes.allSatisfy { $0.id == receipt }, comment)
      }
    }
  }

  private func send(_ isJournalWritten: Bool, _ path: String) throws -> QueueEntryID {
    let sender = try SharedContainer(path: path).queue("q").sender("a")
    try sender.enqueue(0, durability: .durable)
    for number in 1...20 { try sender.enqueue(.integer(Int64(number))) }
    try sender.enqueue(.string(String(repeating: "large", count: 20_000)))
    let receipt = try sender.enqueue(21, keepsReceipt: true)
    if isJournalWritten { try sender.enqueue(22, durability: .durable) }
    return receipt
  }

  private func after(
    _ kind: Disk.Kind, doing: (() throws -> Void) throws -> Void
  ) throws -> [Int] {
    let disk = try Disk(kind)
    let path = try disk.makeContainer()
    try SharedContainer(path: path).value("other").replace(with: "intact", durability: .durable)
    try doing {
      let sender = try SharedContainer(path: path).queue("q").sender("a")
      try sender.enqueue(1, durability: .durable)
      let cancelled = try sender.enqueue(9, durability: .durable)
      try sender.enqueue(2, durability: .durable, keepsReceipt: true)
      try sender.cancel(cancelled)
    }
    try disk.cutPower()
    try disk.restart()
    let consumer = try SharedContainer(path: path).queue("q").consume()
    var numbers: [Int] = []
    while let entry = try consumer.next(until: .now) {
      numbers.append(entry.payload.intValue ?? -1)
      try entry.acknowledge()
    }
    let receipts = try consumer.queue.sender("a").receipts().map { $0.payload.intValue ?? -1 }
    return numbers.filter { $0 != 9 } + receipts
  }
}
