import FoundationEssentials
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

@Suite("An observer in a process without free descriptors", .blocking)
struct FewDescriptorsTests {
  private let directory: TemporaryDirectory
  private let container: SharedContainer
  private let observer: Participant

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
    observer = try Participant(directory.path)
  }

  /// Leaves the observer so many free descriptors, once the dispatch library has its own there.
  ///
  /// The library starts a moment after the first use and ends a process in which it cannot open
  /// them. Its timer is the last.
  private func leave(_ count: Int) throws {
    let directory = "/proc/\(observer.processID)/fd"
    var used: [Int] = []
    try eventually("the dispatch library has started") {
      used = try FileManager.default.contentsOfDirectory(atPath: directory).compactMap(Int.init)
      return used.contains { number in
        // A descriptor that was closed since the listing has no link.
        let link = try? FileManager.default.destinationOfSymbolicLink(
          atPath: "\(directory)/\(number)")
        return link == "anon_inode:[timerfd]"
      }
    }
    let free = (0..<1_000).filter { !used.contains($0) }.prefix(count)
    let limit = free.last.map { $0 + 1 } ?? 3
    #expect(try observer.ask("mailbox-descriptors \(limit)") == "done")
  }

  // The timer of the dispatch library ended the process with one, and never fired with two.
  @Test("learns of an expiry", arguments: 1...3)
  func expiry(free: Int) throws {
    #expect(try observer.ask("watch-value k") == "done")
    try leave(free)
    var seen = ""
    // The value expires unseen on a machine that is busy for that long.
    for milliseconds in [200, 2_000, 20_000] where seen.isEmpty {
      try container.value("k").replace(with: 1, expiresAfter: .milliseconds(milliseconds))
      try eventually("it is reported, or has expired") {
        seen = try observer.ask("watch-seen k")
        return try !seen.isEmpty || container.value("k").read() == nil
      }
    }
    try eventually("its expiry is reported") { try observer.ask("watch-seen k") == "1 nil" }
  }

  @Test("reports a change of defaults when it has some again")
  func defaults() throws {
    #expect(try observer.ask("events begin") == "done")
    #expect(try observer.ask("watch-default volume") == "done")
    try leave(0)
    let other = try Participant(directory.path)
    #expect(try other.ask("defaults-set volume 1") == "done")
    try eventually("it cannot look") { try observer.ask("events failure") != "0" }
    #expect(try observer.ask("mailbox-descriptors 1000") == "done")
    try eventually("it is reported") { try observer.ask("watch-seen volume") == "1" }
  }
}
