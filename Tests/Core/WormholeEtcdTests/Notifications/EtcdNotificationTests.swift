import Dispatch
import Testing
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeEtcd

/// What a process knows of posts is behind by what its watch has not delivered yet.
@Suite("A notification on etcd", .blocking, .needsEtcd)
struct EtcdNotificationTests {
  @Test("comes once at the last resume, even if the watch is behind the posts until then")
  func resumedBehind() throws {
    let directory = try TemporaryDirectory()
    let container = try TestEngine.etcd.container(at: directory.path)
    let etcd = try #require(container.engine as? EtcdContainer)
    let heard = Heard<Int>()
    let registration = try container.notification("n").observe(on: DispatchQueue(label: "test")) {
      _ in heard.add(1)
    }
    try registration.suspend()

    // All watches of this process are served by one thread, which this one keeps for a moment.
    let (isHeld, mayGoOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let key = Array("test\(directory.path)/held".utf8)
    let before = try etcd.client.read(.key(key), until: soon).moment
    let watch = etcd.client.watch(.key(key), after: before) { _ in
      isHeld.signal()
      _ = mayGoOn.wait(timeout: .now() + 20)
    }
    defer { watch.cancel() }
    _ = try etcd.client.commit(
      EtcdTransaction(if: [.absent(key)], then: [.put(key: key, value: [])]), until: soon)
    #expect(isHeld.wait(timeout: .now() + 30) == .success)

    try container.notification("n").post()
    try registration.resume()
    do {
      defer { mayGoOn.signal() }
      try eventually("the post is delivered", within: .seconds(10)) { heard.all.count == 1 }
    }
    try container.notification("n").post()
    try eventually("the next one is delivered") { heard.all.count > 1 }
    #expect(heard.all.count == 2, "the first post was not delivered again")
  }
}
