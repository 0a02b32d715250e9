import Wormhole
import WormholeWorkshop

/// The cost of a publication when the container holds many names, or another process observes many.
/// The floor of each row is our own code with one name.
enum NamesRows {
  static func measure(_ bench: Bench) throws -> [Row] {
    let (present, count) = (bench.scaled(100_000), bench.scaled(10_000))
    let few = try bench.container("names-1")
    let many = try bench.container("names-many")
    let content = SharedCount.content(1)
    for index in 0..<present { try many.value("name-\(index)").replace(with: content) }
    let alone = try compare(few, many, bench: bench)
    let one = try Worker("observe", [bench.path + "/names-1", "1"])
    let all = try Worker("observe", [bench.path + "/names-many", "\(count)"])
    let observed = try compare(few, many, bench: bench)
    withExtendedLifetime((one, all)) {}
    return [
      Row(
        "publish, \(present) names present / 1 present", ours: alone[1], floor: alone[0],
        expected: .ratioAtMost(1.2)),
      Row(
        "publish, \(count) names observed / 1 observed", ours: observed[1], floor: observed[0],
        expected: .ratioAtMost(1.2)),
    ]
  }

  private static func compare(
    _ few: SharedContainer, _ many: SharedContainer, bench: Bench
  ) throws -> [[Double]] {
    let content = SharedCount.content(2)
    return try alternate(
      rounds: bench.shortRounds, runs: 4,
      [few, many].map { $0.value("name-0") }.map { value in
        { try value.replace(with: content) }
      })
  }
}
