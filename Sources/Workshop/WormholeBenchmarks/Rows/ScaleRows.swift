import FoundationEssentials
import Wormhole
import WormholePropertyLists
import WormholeWorkshop

/// Costs that grow with the size of a value, and with the number of processes at work.
enum ScaleRows {
  /// The two numbers of processes that one row compares.
  private static let processes = (few: 2, many: 64)

  static func measure(_ bench: Bench) throws -> [Row] {
    try [200, 20 << 10, 2 << 20].flatMap { try sized($0, bench) } + [crowd(bench)]
  }

  /// Measures publishing and reading a value of a size, beside the bare calls with as many bytes. A value of
  /// more than a block is published when its content is written, and so is the floor's.
  private static func sized(_ bytes: Int, _ bench: Bench) throws -> [Row] {
    let place = try bench.directory("size-\(bytes)")
    let value = try SharedContainer(path: place).value("value")
    let raw = try RawValue(place, "raw")
    let ours = PropertyListValue.data(Data(repeating: 0x78, count: bytes - 60))
    let theirs = [UInt8](repeating: 0x78, count: bytes)
    let size =
      switch bytes {
      case (1 << 20)...: "\(bytes >> 20) MiB"
      case (1 << 10)...: "\(bytes >> 10) KiB"
      default: "\(bytes) B"
      }
    let results = try alternate(
      rounds: bytes < 1 << 20 ? bench.shortRounds : bench.rounds, runs: 4,
      [
        { try value.replace(with: ours) }, { try raw.publish(theirs, waits: bytes > 4_096) },
        { _ = try value.snapshot().bytes() }, { _ = try raw.readAll() },
        { try raw.publish(theirs) },
      ])
    return [
      Row(
        "publish, \(size) / exchange + unlink", ours: results[0], floor: results[1],
        notes: bytes > 4_096
          ? ["both wait for the write; without, \(fixed(results[4].median / 1_000, 1)) µs"] : []),
      Row("read, \(size) / open + fstat + read", ours: results[2], floor: results[3]),
    ]
  }

  /// Measures many processes that change values of their own in one container at the same time: each
  /// change's part of the whole. The floor is our own code with as few as the machine may have cores.
  private static func crowd(_ bench: Bench) throws -> Row {
    let place = try bench.directory("crowd")
    _ = try SharedContainer(path: place)
    let workers = try (0..<processes.many).map { number in
      try Worker("increment", [place, "count-\(number)"])
    }
    func round(_ count: Int) throws -> Double {
      let begin = ContinuousClock.now
      for worker in workers.prefix(count) { try worker.tell("\(bench.isQuick ? 100 : 300)") }
      let done = try workers.prefix(count).map { Double(try $0.answer()) ?? 0 }
      return (ContinuousClock.now - begin).nanoseconds / done.reduce(0, +)
    }
    let results = try alternate(
      rounds: bench.rounds, [{ try round(processes.many) }, { try round(processes.few) }])
    return Row(
      "update, \(processes.many) processes, each its own / \(processes.few) processes",
      ours: results[0], floor: results[1], expected: .ratioAtMost(1.2),
      notes: [
        "\(fixed(1e9 / results[0].median, 0))/s against \(fixed(1e9 / results[1].median, 0))/s"
      ])
  }
}
