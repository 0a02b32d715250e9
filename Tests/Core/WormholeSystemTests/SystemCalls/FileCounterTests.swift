import Testing
import WormholeSystem
import WormholeTestSupport

@Suite("A counter in a file", .blocking)
struct FileCounterTests {
  private let directory: TemporaryDirectory
  private let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = directory.path + "/counter"
    try FileDescriptor.open(path, [.writeOnly, .create], mode: 0o600)
      .writeAll(FileCounter.initialContent)
  }

  private func counter() throws -> FileCounter {
    try FileCounter(FileDescriptor.open(path, [.readWrite]))
  }

  @Test("wakes one thread that waits, through any mapping of it")
  func wakes() async throws {
    let far = ContinuousClock.now + .seconds(60)
    let waiting = try counter()
    let other = try counter()
    async let isWoken = Blocking.run { waiting.wait(unlessChangedFrom: 0, atMost: .seconds(60)) }
    // Until the thread sleeps there is nobody to wake; after that its wait ends at once.
    _ = other.addOne()
    #expect(try await isWoken)
    #expect(try waiting.value() == 1)
    #expect(ContinuousClock.now < far)
  }

  @Test("ends the wait of a thread that saw an older number")
  func changed() throws {
    let counter = try counter()
    #expect(!counter.addOne())
    #expect(counter.wait(unlessChangedFrom: 0, atMost: .seconds(3_600)))
    #expect(counter.wait(unlessChangedFrom: 1, atMost: .microseconds(1)))
  }

  @Test("without a number is an error, and not a fault")
  func shortened() throws {
    let counter = try counter()
    try FileDescriptor.open(path, [.writeOnly, .truncate]).close()
    #expect(try counter.value() == nil)
    #expect(!counter.wait(unlessChangedFrom: 0, atMost: .seconds(3_600)))
    #expect(!counter.addOne())
  }
}
