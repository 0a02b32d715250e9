import FoundationEssentials
import Wormhole
import WormholeSystem
import WormholeToolkit

/// The command line of another program, given after `--`.
struct ExternalCommand: Sendable {
  let words: [String]
  /// The variables with which the program finds the container of its starter; none without one.
  var container: [String: String] = [:]
  /// The program's current directory; nil for this process's.
  var directory: SharedDescriptor?

  /// Starts the program.
  ///
  /// - Parameters:
  ///   - errors: its standard error; nil for ours.
  ///   - inherited: the descriptor that the program gets as its descriptor 10.
  ///   - endsWithParent: whether the kernel kills the program together with this process; the
  ///     calling thread must then be the main one.
  func start(
    variables: [String: String], input: Int32 = 0, output: Int32 = 1, errors: Int32? = nil,
    inheriting inherited: Int32? = nil, endsWithParent: Bool = true
  ) throws(Errno) -> ChildProcess {
    let variables = container.merging(variables) { $1 }
    return try ChildProcess(
      words[0], Array(words.dropFirst()), environment: Self.environment(with: variables),
      input: input, output: output, errors: errors ?? 2, inheriting: inherited,
      in: directory?.descriptor.rawValue, endsWithParent: endsWithParent)
  }

  private static func environment(with variables: [String: String]) -> [String] {
    // NUL would end a value.
    let assignments = variables.map { name, value in "\(name)=\(value.filter { $0 != "\0" })" }
    return Program.environment(with: assignments).filter { entry in
      assignments.contains(entry) || !own.contains { entry.hasPrefix($0 + "=") }
    }
  }

  /// The variables for this program alone: a command's message to the service manager's socket would be
  /// taken for ours.
  private static let own = [Readiness.socketVariable, CommandVariable.copy]

  /// Runs the program to its end; it ends together with this process.
  ///
  /// - Parameters:
  ///   - input: its standard input, from a file in memory: it may be longer than a pipe holds, and
  ///     the program need not read it.
  ///   - collectsOutput: whether its standard output is returned; otherwise it shares ours.
  ///   - mostOutput: with it, standard error is also collected, in one text; its last bytes, this
  ///     many, are kept. Without it all is kept.
  ///   - interruption: passes signals on to the program; without it, a signal ends this process.
  ///   - unwanted: readable once no caller waits for the result any longer; the program then gets
  ///     SIGTERM. Needs `interruption`.
  ///   - work: what is waited for.
  ///   - inherited: the descriptor that the program gets as its descriptor 10.
  ///   - limit: the work may run until then. Needs `interruption`.
  /// - Returns: how it ended, its standard output if collected, and whether `limit` ended it.
  /// - Throws: `CommandError` if it cannot be started; after its end if waiting for it failed.
  func run(
    input: [UInt8], variables: [String: String] = [:], collectsOutput: Bool = false,
    keepingLast mostOutput: Int? = nil, interruption: Interruption? = nil,
    unwanted: OneResult<Bool>? = nil,
    work: CommandWork = .first, inheriting inherited: Int32? = nil,
    until limit: ContinuousClock.Instant? = nil
  ) throws -> (termination: Termination, output: [UInt8], isLate: Bool) {
    var hasStarted = false
    do throws(Errno) {
      let standardInput = try FileDescriptor.memoryFile(name: "value", content: input)
      let pipe = try makePipe()
      let child = try start(
        variables: variables, input: standardInput.rawValue,
        output: collectsOutput ? pipe.write.rawValue : 1,
        errors: mostOutput == nil ? nil : pipe.write.rawValue, inheriting: inherited)
      hasStarted = true
      let source = pipe.takeRead()
      return try child.waitForEnd(
        interruption, work: work, collecting: collectsOutput ? source : nil,
        keepingLast: mostOutput, unwanted: unwanted, until: limit)
    } catch {
      guard hasStarted else { throw self.error(error) }
      throw CommandError(
        cannot: "wait for the end of \(words[0])", because: error, isOwn: true)
    }
  }

  /// Runs the program to its end while this process is present under a name.
  ///
  /// - Parameter role: without it the program may not run; nil if others may run beside it.
  /// - Throws: `CommandError` if it cannot be started, or the role was lost.
  func run(
    variables: [String: String], under role: RoleWatch?, _ interruption: Interruption,
    whenStarted: () -> Void = {}
  ) throws -> Termination {
    do {
      try role?.checkBeforeStart()
      var variables = variables
      variables[CommandVariable.fence] = role.map { "\($0.registration.fence.number)" }
      let child = try start(
        variables: variables, inheriting: role?.registration.inheritable)
      whenStarted()
      let termination = try child.waitForEnd(interruption, work: .tree, under: role).termination
      try role?.check()
      return termination
    } catch let error as Errno {
      throw self.error(error)
    }
  }

  /// The error of a program that could not be started, with the exit status that a shell gives.
  func error(_ error: Errno) -> CommandError {
    let status: ExitStatus =
      switch error {
      case .noSuchFile, .notDirectory: .commandNotFound
      case .accessDenied, .notPermitted, .notAProgram: .commandNotExecutable
      default: .inputOutput
      }
    let advice = error == .wouldBlock ? "; \(ThreadShortage(error: error).remedy)" : ""
    return CommandError(
      cannot: "run \(words[0])", because: "\(error)\(advice)", status: status,
      isOwn: error.isShortage)
  }

  /// The failure as a sentence; nil if the program ended with status 0.
  func failure(_ termination: Termination) -> String? {
    switch termination {
    case .exited(0): nil
    case .exited(let status): "\(words[0]) ended with status \(status)"
    case .killed(let signal): "\(words[0]) was killed by signal \(signal)"
    }
  }
}

/// The output of another program, read from a pipe as it arrives.
struct CollectedOutput {
  private(set) var bytes: [UInt8] = []
  private var pipe: SharedDescriptor?
  private let most: Int?

  /// - Parameters:
  ///   - pipe: nil if nothing is collected.
  ///   - most: keep this many bytes, the last ones; nil for all.
  init(_ pipe: SharedDescriptor?, keepingLast most: Int? = nil) {
    self.pipe = pipe
    self.most = most
  }

  /// Readable when there is output; nil once the program has closed its end.
  var descriptor: Int32? { pipe?.descriptor.rawValue }

  mutating func read() throws(Errno) {
    guard let descriptor else { return }
    let chunk = try Program.read(from: descriptor, maximumBytes: 64 << 10)
    bytes += chunk
    if let most { bytes.removeFirst(max(0, bytes.count - most)) }
    // A program that prints without end gets SIGPIPE.
    if chunk.isEmpty || bytes.count > JSONInput.maximumBytes { pipe = nil }
  }

  /// Reads the rest after the program's end, without waiting for its own children.
  mutating func readRest() throws(Errno) {
    // A daemon that the command left behind may print without end.
    let end = ContinuousClock.now + .seconds(1)
    while let descriptor, try waitReadable([descriptor], until: .now)[0] {
      try read()
      if most != nil, .now >= end { return }
    }
  }
}

/// The variables in the environment of a command that is run for a delivery.
enum CommandVariable {
  /// Set for a process that takes beside others of one command, which reports for all of them.
  static let copy = "WORMHOLE_COPY"
  /// The name at which it was received: of a value, a queue or a log.
  static let identifier = "WORMHOLE_IDENTIFIER"
  /// When it was sent, as ISO 8601.
  static let time = "WORMHOLE_TIME"
  static let sender = "WORMHOLE_SENDER"
  /// The name of the peer for which it was received; `wormhole` also takes it as its own name.
  static let peer = "WORMHOLE_PEER"
  static let transfer = "WORMHOLE_TRANSFER"
  /// 1 for a redelivery, otherwise 0.
  static let redelivery = "WORMHOLE_REDELIVERY"
  /// The number of this attempt.
  static let attempt = "WORMHOLE_ATTEMPT"
  /// The number of the exclusive registration under which the command runs: see `Fence`.
  static let fence = "WORMHOLE_FENCE"

  /// The variables of every named delivery; empty if the name is unknown.
  static func common(identifier: String, time: Date?, sender: String?) -> [String: String] {
    [
      Self.identifier: identifier, Self.time: time.flatMap(ISO8601.text) ?? "",
      Self.sender: sender ?? "",
    ]
  }
}

enum CommandLinePath {
  /// A path that stays valid for a process in another directory; the verb is for the error's
  /// sentence.
  static func absolute(_ file: String, to verb: String) throws -> String {
    guard !file.hasPrefix("/") else { return file }
    let directory = try reporting(
      cannot: "find the current directory, to \(verb) \(file)", linkTarget("/proc/self/cwd"))
    return directory == "/" ? "/" + file : directory + "/" + file
  }

  /// Finds a program as a shell does, in the directories of PATH; throws if it does not exist or
  /// may not be run.
  static func program(_ name: String, searchPath: String) throws -> String {
    let isPath = name.contains("/")
    for directory in isPath ? [""] : searchPath.split(separator: ":").map({ "\($0)/" }) {
      let file = try absolute(directory + name, to: "register")
      // Many programs are links, so the link is followed. A file that cannot be examined cannot be run.
      if let status = try? fileStatus(file, followingLinks: true), status.kind == .regular,
        status.permissions & 0o111 != 0
      {
        return file
      }
    }
    throw CommandError.no(
      "register \(name)",
      because: isPath
        ? "there is no such program, or it may not be run" : "there is no such program in PATH")
  }
}
