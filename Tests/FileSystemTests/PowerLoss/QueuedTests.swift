import AppGroup
import PropertyLists
import SystemCalls
import TestSupport
import Testing

@Suite("What was sent .durable survives a power cut", .enabled(if: !Disk.usable.isEmpty))
struct QueuedTests {
  @Test("Entries and receipts are there, also where an entry between was cancelled")
  func survives() throws {
    for kind in Disk.usable {
      #expect(try after(kind) { try $0() } == [1, 2, 2], "\(kind)")
    }
  }

  // The detector must detect.
  #if DEBUG
    @Test("Without the fsyncs they are lost")
    func detects() throws {
      let lazy = Faults.Plan { call, _ in call == .fsync ? .skip : .proceed }
      for kind in Disk.usable {
        let found = try after(kind) { try Faults.$plan.withValue(lazy, operation: $0) }
        #expect(found != [1, 2, 2], "\(kind)")
      }
    }
  #endif

  private func after(
    _ kind: Disk.Kind, doing: (() throws -> Void) throws -> Void
  ) throws -> [Int] {
    let disk = try Disk(kind)
    let path = try disk.makeContainer()
    try SharedContainer(path: path).value("other").replace(with: "intact", durability: .durable)
    try doing {
      let sender = try SharedContainer(path: path).queue("q").sender("a")
      try sender.send(1, durability: .durable)
      let cancelled = try sender.send(9, durability: .durable)
      try sender.send(2, durability: .durable, keepsReceipt: true)
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
