import Dispatch
import Synchronization
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

/// A file system whose files have times in whole seconds.
enum CoarseTimes {
  // Inodes of 128 bytes have no room for more (ext4(5), "inode size"): the default for small file
  // systems until e2fsprogs 1.46.4.
  static let mounting =
    "truncate -s 64M disk && mkfs.ext4 -q -I 128 disk && mkdir at && mount -o loop disk at"

  static let isPossible: Bool = {
    let obstacle = MountNamespace.obstacle(to: mounting)
    if let obstacle { print("skipped: no such file system here: \(obstacle)") }
    return obstacle == nil
  }()
}

@Suite("On a file system that keeps seconds only", .blocking, .enabled(if: CoarseTimes.isPossible))
struct CoarseTimesTests {
  private final class Last: Sendable {
    private let number = Mutex<Int64?>(nil)
    func hear(_ new: Int64?) { number.withLock { $0 = new } }
    var heard: Int64? { number.withLock { $0 } }
  }

  @Test("the last value is delivered although it has the inode of its predecessor")
  func lastValue() throws {
    let mounts = try MountNamespace()
    try mounts.run(CoarseTimes.mounting + " && mkdir -m 0700 at/container")
    let value = try SharedContainer(path: mounts.inside + "/at/container").value("k")
    let queue = DispatchQueue(label: "test")
    let last = Last()
    let observation = try value.observe(on: queue) { snapshot in
      do { last.hear(try snapshot.propertyList()?.int64Value) } catch { Issue.record(error) }
    }
    for number in stride(from: Int64(0), to: 15, by: 3) {
      try value.replace(with: .integer(number))
      try eventually("it is delivered") { last.heard == number }
      queue.suspend()
      defer { queue.resume() }
      try value.replace(with: .integer(number + 1))
      try value.replace(with: .integer(number + 2))
    }
    try eventually("the last one is delivered") { last.heard == 14 }
    withExtendedLifetime(observation) {}
  }
}
