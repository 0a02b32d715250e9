import Dispatch
import Synchronization
import Testing
import WormholeTestSupport

@testable import WormholeSystem

@Suite("The removal of an item", .blocking)
struct TreesRemovalTests {
  @Test("leaves nothing of it, and everything else unchanged")
  func random() throws {
    let seed = TestSeed.next("TREES_REMOVAL_SEED")
    let scene = try TreesScene()
    var tree = RandomTree(seed.generator)
    try tree.make(scene.item, at: scene.at, entries: 60)
    try scene.shell(
      "mkdir -p kept/a; echo b >kept/a/b; ln -s ../kept item/link; ln kept/a/b item/hardlink")
    try TreeRemoval().remove(scene.item, at: scene.at)
    #expect(try scene.shell("ls; cat kept/a/b") == "kept\nb\n", "\(seed)")
  }

  @Test(
    "of a file, a link, a FIFO and of nothing is one step",
    arguments: [
      "echo hello >item", "ln -s kept item", "mkfifo item", "mkdir item", "true",
    ])
  func simple(_ making: String) throws {
    let scene = try TreesScene()
    try scene.shell("mkdir kept; touch kept/a; \(making)")
    try TreeRemoval().remove(scene.item, at: scene.at)
    #expect(try scene.shell("find . | sort") == ".\n./kept\n./kept/a\n")
  }

  @Test("works at any depth")
  func deep() throws {
    let scene = try TreesScene()
    var directory = try FileDescriptor.open(scene.place.path, [.readOnly, .directory])
    for depth in 0...1_000 {
      let name = depth == 0 ? scene.item : FileName("a directory's name")
      try makeDirectory(name, at: directory.rawValue)
      directory = try FileDescriptor.open(name, at: directory.rawValue, [.readOnly, .directory])
      try makeDirectory(FileName("other"), at: directory.rawValue)
    }
    try TreeRemoval().remove(scene.item, at: scene.at)
    #expect(try scene.shell("ls -A") == "")
  }

  @Test("opens directories that forbid it to their owner")
  func readOnly() throws {
    let scene = try TreesScene()
    try scene.shell(
      """
      mkdir -p item/a/b/c item/empty; touch item/a/file item/a/b/c/file
      [ $(id -u) = 0 ] && chown -R 65534 .
      chmod 500 item/a/b item; chmod 400 item/a; chmod 0 item/a/b/c item/empty
      """)
    try asNobody { try TreeRemoval().remove(scene.item, at: scene.at) }
    #expect(try scene.shell("ls -A") == "")
  }

  @Test("stops at another user's entry, and names it")
  func foreign() throws {
    guard Program.effectiveUser == 0 else { return }
    let scene = try TreesScene()
    try scene.shell("mkdir -p item/a; touch item/a/file; chown 65534 . item")
    let error = try #require(throws: TreeError.self) {
      try asNobody { try TreeRemoval().remove(scene.item, at: scene.at) }
    }
    #expect(error.description == "cannot remove item/a/file: Permission denied")
  }

  @Test("stops at a file that is immutable, and names it")
  func immutable() throws {
    let scene = try TreesScene()
    let answer = try scene.shell(
      "mkdir -p item/a; touch item/a/file; PATH=$PATH:/sbin:/usr/sbin chattr +i item/a/file")
    guard answer == "" else { return print("skipped: no immutable files here: \(answer)") }
    let error = try #require(throws: TreeError.self) {
      try TreeRemoval().remove(scene.item, at: scene.at)
    }
    try scene.shell("PATH=$PATH:/sbin:/usr/sbin chattr -i item/a/file")
    #expect(error.description == "cannot remove item/a/file: Operation not permitted")
  }

  @Test(
    "stops at a mount point, names it, and leaves the mounted file system alone",
    arguments: ["mount -t tmpfs tmpfs item/a/b", "mount --bind kept item/a/b"])
  func mounted(_ mounting: String) throws {
    if let obstacle = MountNamespace.obstacle(to: "mount -t tmpfs tmpfs .") {
      return print("skipped: no mounts here: \(obstacle)")
    }
    let mounts = try MountNamespace()
    try mounts.run("mkdir -p item/a/b kept && \(mounting) && touch item/a/b/file")
    let scene = try TreesScene(at: mounts.inside)
    let error = try #require(throws: TreeError.self) {
      try TreeRemoval().remove(scene.item, at: scene.at)
    }
    #expect(error.path.text == "item/a/b" && error.reason == .mountPoint)
    #expect(try mounts.run("ls item/a/b") == "file")
    // A sandbox without openat2 still notices another file system, but not a bind mount.
    #if DEBUG
      guard mounting.contains("tmpfs") else { return }
      let sandbox = Faults.Plan { call, _ in call == .openat2 ? .fail(.noFunction) : .proceed }
      #expect(throws: error) {
        try Faults.$plan.withValue(sandbox) { try TreeRemoval().remove(scene.item, at: scene.at) }
      }
      #expect(try mounts.run("ls item/a/b") == "file")
    #endif
  }

  @Test("continues while others add to it, for a while")
  func growing() throws {
    #if DEBUG
      let scene = try TreesScene()
      try scene.shell("mkdir -p item/a; touch item/a/file item/file")
      let added = Mutex(0)
      let adding = Faults.Plan { call, _ in
        guard call == .unlinkat, added.withLock({ $0 }) < 20 else { return .proceed }
        let number = added.withLock { added in
          added += 1
          return added
        }
        Faults.$plan.withValue(nil) { add(number, to: scene) }
        return .proceed
      }
      try Faults.$plan.withValue(adding) { try TreeRemoval().remove(scene.item, at: scene.at) }
      #expect(added.withLock { $0 } == 20)
      #expect(try scene.shell("ls -A") == "")
    #endif
  }

  @Sendable private func add(_ number: Int, to scene: TreesScene) {
    do {
      _ = try scene.shell("mkdir -p item/b; touch item/b/\(number)")
    } catch {
      Issue.record(error)
    }
  }

  @Test("by several at once leaves nothing and reports no error")
  func together() throws {
    for _ in 0..<5 {
      let scene = try TreesScene()
      try scene.shell(
        "for a in 1 2 3 4 5 6; do mkdir -p item/$a/b; touch item/$a/b/c item/$a/d; done")
      DispatchQueue.concurrentPerform(iterations: 4) { _ in
        do { try TreeRemoval().remove(scene.item, at: scene.at) } catch { Issue.record(error) }
      }
      #expect(try scene.shell("ls -A") == "")
    }
  }
}
