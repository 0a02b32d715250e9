import Dispatch
import Synchronization
import Wormhole
import WormholePropertyLists
import WormholeSystem

/// The check that a restored snapshot is noticed, after which revisions are repeated.
///
/// The workers are at rest, so they lose nothing by it. Their knowledge of the history is wrong
/// from then on: the final changes show whether they observe later changes, and are present again.
struct RestoreCheck {
  private static let promise = "a restored snapshot takes back what came after it, and nothing else"
  private static let patience: Duration = .seconds(15)
  /// The next history remains shorter than this makes the former one.
  private static let lost: UInt64 = 200

  static func check(_ nemesis: Nemesis, _ container: SharedContainer) throws -> Check {
    let value = container.value("torture/restored")
    let seen = Mutex<UInt64?>(nil)
    let observation = try value.observe(startsWithCurrent: true, on: .global()) { snapshot in
      // No member answers while they are restarted; the observer is called again when one does.
      guard let number = try? snapshot.propertyList()?.uint64Value else { return }
      seen.withLock { $0 = number }
    }
    defer { observation.cancel() }
    var evidence: [String] = []
    func expect(_ number: UInt64, _ when: String) throws {
      let deadline = ContinuousClock.now + patience
      while seen.withLock({ $0 }) != number {
        guard ContinuousClock.now < deadline else {
          let last = seen.withLock { $0 }.map(String.init) ?? "nothing"
          return evidence.append("its observer has \(last) \(when), not \(number)")
        }
        pauseThread(.milliseconds(5))
      }
      let now = try value.read()?.uint64Value
      if now != number { evidence.append("\(now.map(String.init) ?? "nothing") is there \(when)") }
    }
    try value.replace(with: 0)
    try nemesis.save()
    for number in 1...lost { try value.replace(with: PropertyListValue(number)) }
    try expect(lost, "before")
    try nemesis.restore()
    try expect(0, "after")
    try value.replace(with: PropertyListValue(lost + 1))
    try expect(lost + 1, "in the end")
    return Check(promise: promise, extent: "\(lost) changes", evidence: evidence)
  }
}
