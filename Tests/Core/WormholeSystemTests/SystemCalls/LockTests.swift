import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@Suite("A lock", .blocking)
struct LockTests {
  private static func open(_ path: String) throws -> SharedDescriptor {
    SharedDescriptor(try FileDescriptor.open(path, [.readWrite, .create]))
  }

  // A child that another test is just starting keeps closed files open until its exec (fork(2)).
  private static func becomesExclusive(_ file: SharedDescriptor) throws {
    try eventually("the lock is free") { try file.descriptor.tryLock(.exclusive) }
  }

  @Test("is shared by readers, and exclusive against all others, even in one process")
  func modes() throws {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/lock"
    let first = try Self.open(path)
    let second = try Self.open(path)
    var third: SharedDescriptor? = try Self.open(path)
    #expect(try first.descriptor.tryLock(.shared))
    #expect(try second.descriptor.tryLock(.shared))
    #expect(try third?.descriptor.tryLock(.exclusive) == false)
    #expect(try third?.descriptor.tryLock(.shared) == true)
    third = nil
    // A failed conversion to a stronger lock loses the weaker one, flock(2).
    #expect(try !first.descriptor.tryLock(.exclusive))
    try Self.becomesExclusive(second)
    #expect(try !first.descriptor.tryLock(.shared))
  }

  @Test("is free when its open file is closed, and not before")
  func closed() throws {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/lock"
    var holder: SharedDescriptor? = try Self.open(path)
    let other = try Self.open(path)
    #expect(try holder?.descriptor.tryLock(.exclusive) == true)
    #expect(try !other.descriptor.tryLock(.exclusive))
    holder = nil
    try Self.becomesExclusive(other)
  }

  @Test("of another process is found, and gone with it", arguments: ["/tmp", "/dev/shm"])
  func otherProcess(_ parent: String) throws {
    let directory = try TemporaryDirectory(under: parent)
    let path = "\(directory.path)/lock"
    let mine = try Self.open(path)
    let status = try mine.descriptor.status()
    #expect(try LockTable.current().holders(of: status).isEmpty)
    let pipe = try makePipe()
    // -F: the program becomes the command, so the number stays (flock(1)).
    let child = try ChildProcess(
      "flock", ["-F", path, "sh", "-c", "echo; exec sleep 60"], output: pipe.write.rawValue)
    let ready = pipe.takeRead()
    #expect(try Program.read(from: ready.descriptor.rawValue, maximumBytes: 9) == [10])
    #expect(try !mine.descriptor.tryLock(.shared))
    #expect(try LockTable.current().holders(of: status) == [child.processID])
    let bystander = try Self.open("\(directory.path)/bystander")
    #expect(try LockTable.current().holders(of: bystander.descriptor.status()).isEmpty)
    try child.send(.kill)
    #expect(try child.wait(until: soon) == .killed(signal: 9))
    #expect(try mine.descriptor.tryLock(.exclusive))
    #expect(try LockTable.current().holders(of: status) == [Program.processID])
  }
}
