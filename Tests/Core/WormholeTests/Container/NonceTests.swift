import Glibc
import Testing
import WormholeTestSupport

@testable import Wormhole

@Suite("Nonces", .blocking)
struct NonceTests {
  @Test("are not those of a forked child, which has the parent's count")
  func fork() throws {
    // Both draw their first number here, as a process does that forks later.
    _ = Nonce.nextNumber()
    var ends: [Int32] = [0, 0]
    try #require(pipe(&ends) == 0)
    defer { for end in ends { close(end) } }
    // Swift does not offer it, because a child may do almost nothing: this one draws a number.
    let symbol = try #require(dlsym(UnsafeMutableRawPointer(bitPattern: 0), "fork"))
    let fork = unsafeBitCast(symbol, to: (@convention(c) () -> Int32).self)
    let numbers = UnsafeMutablePointer<UInt64>.allocate(capacity: 1)
    defer { numbers.deallocate() }
    let child = fork()
    if child == 0 {
      numbers.pointee = Nonce.nextNumber()
      _exit(write(ends[1], numbers, 8) == 8 ? 0 : 1)
    }
    try #require(child > 0)
    let mine = Set((0..<1_000).map { _ in Nonce.nextNumber() })
    var status: Int32 = -1
    #expect(waitpid(child, &status, 0) == child && status == 0)
    try #require(read(ends[0], numbers, 8) == 8)
    #expect(!mine.contains(numbers.pointee))
  }
}
