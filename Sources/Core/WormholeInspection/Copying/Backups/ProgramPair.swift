import Wormhole
import WormholeSystem
import WormholeToolkit

/// Two programs that run at the same time: the second one reads what the first one writes.
///
/// The second program reads the end of its input only after the first has ended with success. So it
/// never takes a part for the whole: if the first fails, the second is killed before.
final class ProgramPair {
  private final class Running {
    let name: String
    let process: ChildProcess
    var end: Termination?

    init(_ name: String, _ process: consuming ChildProcess) {
      self.name = name
      self.process = process
    }
  }

  /// The time between two calls of the check.
  private static let interval: Duration = .milliseconds(50)
  /// The most that is kept of the programs' messages.
  private static let maximumText = 4 << 10
  /// How long to wait for the end of a killed program.
  private static let killTime: Duration = .seconds(10)

  private let errors: SharedDescriptor
  private var said: [UInt8] = []
  private var between: (read: SharedDescriptor?, write: SharedDescriptor?)
  private let first: Running
  private let second: Running

  /// Starts both programs, each given by its name and its arguments. They are killed when the
  /// calling thread ends.
  ///
  /// - Parameters:
  ///   - input: What the first one reads; nil for nothing.
  ///   - output: What the second one writes to; nil for nothing.
  ///   - directory: The current directory of both.
  /// - Throws: `Failure`, `Errno`. Then none of them runs.
  init(
    _ firstWords: [String], into secondWords: [String], from input: Int32? = nil,
    to output: Int32? = nil, in directory: SharedDescriptor
  ) throws {
    let pipe = try makePipe().takeBoth()
    let errorPipe = try makePipe().takeBoth()
    let nothing = try FileDescriptor.open("/dev/null", .readWrite)
    func start(_ words: [String], _ input: Int32, _ output: Int32) throws -> Running {
      let name = words.first ?? ""
      do throws(Errno) {
        return Running(
          name,
          try ChildProcess(
            name, Array(words.dropFirst()), environment: Self.environment, input: input,
            output: output, errors: errorPipe.write.descriptor.rawValue,
            in: directory.descriptor.rawValue,
            endsWithParent: true))
      } catch .noSuchFile {
        throw Failure(program: name, end: nil, lines: [])
      }
    }
    let started = try start(
      secondWords, pipe.read.descriptor.rawValue, output ?? nothing.rawValue)
    do {
      first = try start(firstWords, input ?? nothing.rawValue, pipe.write.descriptor.rawValue)
    } catch {
      Self.kill([started])
      throw error
    }
    second = started
    between = (pipe.read, pipe.write)
    errors = errorPipe.read
  }

  /// This process's variables, without those that change what tar(1) and gzip(1) do. All names are
  /// bytes, and sentences are in English.
  private static var environment: [String] {
    let changing = ["TAR_OPTIONS=", "GZIP=", "POSIXLY_CORRECT="]
    return Program.environment(with: ["LC_ALL=C"]).filter { variable in
      !changing.contains { variable.hasPrefix($0) }
    }
  }

  /// Waits until both programs have ended with success. After an error none of them runs.
  ///
  /// - Parameter check: Called several times a second; its errors end the programs.
  /// - Throws: `Failure`, `Errno`, the errors of `check`.
  func run(check: () throws -> Void) throws {
    do {
      while first.end == nil || second.end == nil {
        try wait()
        // First, because a signal from the terminal ends the programs, too.
        try check()
        for program in [first, second] { try throwFailure(of: program) }
        // The end of the input of the second one.
        if first.end != nil { between.write = nil }
        // If the second one does not read the rest, the first one gets SIGPIPE.
        if second.end != nil { between.read = nil }
      }
    } catch {
      Self.kill([first, second])
      throw error
    }
  }

  private func wait() throws(Errno) {
    let programs = [first, second]
    let ready = try waitReadable(
      // poll(2) does not wait for the number -1.
      programs.map { $0.end == nil ? $0.process.descriptor : -1 } + [errors.descriptor.rawValue],
      until: .now + Self.interval)
    for (program, isReady) in zip(programs, ready) where isReady {
      program.end = try program.process.wait(until: .now)
    }
    try readErrors()
  }

  private func readErrors() throws(Errno) {
    let descriptor = errors.descriptor.rawValue
    while try waitReadable([descriptor], until: .now)[0] {
      let piece = try Program.read(from: descriptor, maximumBytes: Self.maximumText)
      // Both have closed it, so at least one of them has ended or is about to.
      guard !piece.isEmpty else { return }
      said += piece.prefix(Self.maximumText - said.count)
    }
  }

  private func throwFailure(of program: Running) throws {
    guard let end = program.end, end != .exited(0) else { return }
    let lines = String(decoding: said, as: UTF8.self).split(separator: "\n").map(String.init)
    throw Failure(program: program.name, end: end, lines: lines)
  }

  private static func kill(_ programs: [Running]) {
    for program in programs where program.end == nil {
      // It fails only after the end, which is the aim.
      try? program.process.send(.kill)
    }
    for program in programs where program.end == nil {
      // The failure that is being reported matters more than one that has no remedy.
      program.end = try? program.process.wait(until: .now + killTime)
    }
  }
}
