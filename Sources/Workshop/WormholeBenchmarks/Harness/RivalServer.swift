import WormholeSystem
import WormholeWorkshop

/// A server for one run, if its program is installed; it is killed at the end.
final class RivalServer {
  private let process: ChildProcess

  /// - Returns: nil if the program is not installed.
  init?(_ program: String, _ arguments: [String], output: Int32? = nil) throws(Errno) {
    // It complains about limits that it may not raise.
    let quiet = try FileDescriptor.open("/dev/null", .readWrite)
    do throws(Errno) {
      process = try ChildProcess(
        program, arguments, output: output ?? quiet.rawValue, errors: quiet.rawValue)
    } catch {
      guard error == .noSuchFile else { throw error }
      return nil
    }
  }

  deinit {
    do throws(Errno) {
      try process.send(.kill)
      _ = try process.wait(until: .now + .seconds(10))
    } catch {
      // It has ended already.
      return
    }
  }
}

/// A Redis server for one run that flushes each command to the disk before it answers, if the
/// program is installed.
final class RedisServer {
  private let server: RivalServer
  private let socket: String

  /// - Returns: nil if Redis is not installed.
  init?(_ directory: String) throws {
    // Its path must be short (unix(7)), and the directory's may be long.
    socket = "/tmp/benchmarks-\(Program.processID).redis"
    let started = try RivalServer(
      "redis-server",
      [
        "--port", "0", "--unixsocket", socket, "--dir", directory, "--save", "",
        "--appendonly", "yes", "--appendfsync", "always",
      ])
    guard let started else { return nil }
    server = started
    try waitUntilItListens()
  }

  private func waitUntilItListens() throws {
    let deadline = ContinuousClock.now + .seconds(20)
    while true {
      do throws(Errno) {
        return try FileDescriptor.connected(toSocket: socket).close()
      } catch {
        guard ContinuousClock.now < deadline else {
          throw Failure(description: "redis-server does not listen: \(error)")
        }
        pauseThread(.milliseconds(20))
      }
    }
  }

  deinit {
    do throws(Errno) {
      try removeFile(socket)
    } catch {
      Output.problem("cannot remove \(socket): \(error)")
    }
  }

  func connection() throws -> RedisConnection { try RedisConnection(socket) }
}

/// One client, which sends a command and waits for its answer. For one thread at a time.
final class RedisConnection: Sendable {
  private let file: FileDescriptor

  init(_ socket: String) throws { file = try FileDescriptor.connected(toSocket: socket) }

  /// Appends an entry to a list; it is on the disk when this returns.
  func send(_ entry: [UInt8]) throws {
    let head = "*3\r\n$5\r\nRPUSH\r\n$5\r\nqueue\r\n$\(entry.count)\r\n"
    try file.writeAll(Array(head.utf8) + entry + Array("\r\n".utf8))
    let answer = try Program.read(from: file.rawValue, maximumBytes: 64)
    // ":<length of the list>\r\n"
    guard answer.first == UInt8(ascii: ":") else {
      throw Failure(description: "Redis answers \(String(decoding: answer, as: UTF8.self))")
    }
  }
}
