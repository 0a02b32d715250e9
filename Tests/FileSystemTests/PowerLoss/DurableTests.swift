import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@Suite(
  ".durable writes survive a power cut", .blocking, .enabled(if: !Disk.usable.isEmpty))
struct DurableTests {
  @Test("A durable change that has returned is there, whole, and so is the rest of the container")
  func survives() throws {
    for kind in Disk.usable {
      let disk = try Disk(kind)
      for change in DurableChange.all {
        let comment = Comment(rawValue: "\(kind): \(change.testDescription)")
        #expect(throws: Never.self, comment) {
          let found = try after(change, on: disk) { try $0() }
          #expect(try found.get() == change.result, comment)
        }
      }
    }
  }

  @Test("The container of a group and its parent directories are there as well")
  func group() throws {
    for kind in Disk.usable {
      let disk = try Disk(kind)
      let home = "XDG_DATA_HOME=\(try disk.makeContainer())/home/share"
      let writer = try Participant("group:com.example.cinema", environment: [home])
      #expect(try writer.ask("durable seats 7") == "done")
      try disk.cutPower()
      try writer.end()
      try disk.restart()
      let reader = try Participant("group:com.example.cinema", environment: [home])
      #expect(try reader.ask("read seats") == "\(PropertyListValue.integer(7))", "\(kind)")
      try reader.end()
    }
  }

  // The detector must detect: the same cuts with every fsync left out.
  #if DEBUG
    @Test("Without the fsyncs the same cuts lose every one of these changes")
    func detects() throws {
      let lazy = Faults.Plan { call, _ in call == .fsync ? .skip : .proceed }
      for kind in Disk.usable {
        let disk = try Disk(kind)
        for change in DurableChange.all {
          let comment = Comment(rawValue: "\(kind): \(change.testDescription)")
          let found = try after(change, on: disk) {
            try Faults.$plan.withValue(lazy, operation: $0)
          }
          #expect(throws: (any Error).self, comment) {
            if try found.get() != change.result { throw Lost() }
          }
        }
      }
    }
  #endif

  private struct Lost: Error {}

  /// Makes the change in a new container, cuts the power, and reads.
  private func after(
    _ change: DurableChange, on disk: Disk, doing: (() throws -> Void) throws -> Void
  ) throws -> Result<PropertyListValue?, any Error> {
    let path = try disk.makeContainer()
    try prepare(change, path)
    try doing { try change.change(SharedContainer(path: path).value(change.identifier)) }
    try disk.cutPower()
    try disk.restart()

    let container = try SharedContainer(path: path)
    let value = container.value(change.identifier)
    let found = Result { try value.read() }
    #expect(try container.value("other").read() == "intact")
    let known: Set<String> = ["other", change.identifier]
    #expect(try known.isSuperset(of: container.valueIdentifiers()))
    // The container still works.
    try value.replace(with: "again", durability: .durable)
    #expect(try value.read() == "again")
    return found
  }

  private func prepare(_ change: DurableChange, _ path: String) throws {
    let container = try SharedContainer(path: path)
    try container.value("other").replace(with: "intact", durability: .durable)
    try change.before(container.value(change.identifier))
  }
}
