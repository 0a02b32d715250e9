import GroupDefaults
import Wormhole
import WormholeFiles
import WormholePeers
import WormholeSystem
import WormholeTerminals
import WormholeToolkit

/// Why a command could not do its work, with the exit status for scripts.
struct CommandError: Error, Equatable, CustomStringConvertible {
  /// The action and its object, as the user named it: "read seats".
  let action: String
  let reason: String
  let status: ExitStatus

  init(cannot action: String, because reason: String, status: ExitStatus = .inputOutput) {
    self.action = action
    self.reason = reason
    self.status = status
  }

  /// - Parameter status: By default a kernel error's.
  init(cannot action: String, because error: any Error, status: ExitStatus? = nil) {
    let status = status ?? (error as? Errno).map { ExitStatus(of: $0) } ?? .inputOutput
    self.init(cannot: action, because: "\(error)", status: status)
  }

  /// A negative answer, which is not a failure.
  static func no(_ action: String, because reason: String) -> CommandError {
    CommandError(cannot: action, because: reason, status: .no)
  }

  /// The same error with what was done anyway, so that no one does it twice.
  func adding(_ fact: String) -> CommandError {
    CommandError(cannot: action, because: "\(reason); \(fact)", status: status)
  }

  /// `cannot read seats: the file is damaged`; the program puts its name before it.
  var description: String { "cannot \(action): \(reason)" }
}

/// Whether a value has no form in the wanted output; other values may have one.
func isUnprintable(_ error: any Error) -> Bool { (error as? CommandError)?.status == .badData }

/// Makes a call, and reports a kernel error as the action that is not possible.
func reporting<Result: ~Copyable>(
  cannot action: String, _ call: @autoclosure () throws(Errno) -> Result
) throws(CommandError) -> Result {
  do throws(Errno) {
    return try call()
  } catch {
    throw CommandError(cannot: action, because: error)
  }
}

/// The error of a wait for what another process has.
struct InUse: Error {
  let error: WormholeError
}

/// Makes a call that waits for what only one process at a time has.
///
/// - Throws: `InUse` if another process had it until the end of the wait.
func noticingUse<Result>(_ call: () throws -> Result) throws -> Result {
  do {
    return try call()
  } catch let error as WormholeError where error.code == .timedOut && error.holder != nil {
    throw InUse(error: error)
  }
}

/// The sentence in which the program reports an error.
///
/// The remedies of the libraries' errors name methods. For content that cannot be read, the program
/// names `wormhole doctor` instead, which prints the command that repairs it. A file outside the
/// container keeps its own remedy.
func sentence(of error: any Error) -> String {
  switch error {
  case let error as InUse: sentence(of: error.error)
  case let error as WormholeError where error.action == ForeignFile.action: "\(error)"
  case let error as WormholeError where error.code == .damaged && error.isOfDefaults:
    "\(error)".replacing(
      remedy: error.remedy,
      by: "nothing is written over it; '\(ProgramName.called) doctor' shows how to put it aside")
  case let error as WormholeError where error.code == .damaged && error.isBetweenPeers:
    "\(error)".replacing(
      remedy: error.remedy, by: "'\(ProgramName.called) doctor' shows how to put it aside")
  case let error as WormholeError
  where !error.isBetweenPeers
    && ([.damaged, .notAValue].contains(error.code)
      || error.code == .tooLarge && error.errorNumber == nil && error.action.hasPrefix("read")):
    "\(error)".replacing(
      remedy: error.remedy, by: "'\(ProgramName.called) doctor' shows how to repair it")
  default: "\(error)"
  }
}

extension String {
  /// An error's sentence ends with its remedy, if it has one.
  fileprivate func replacing(remedy: String?, by ours: String) -> String {
    guard let remedy, hasSuffix(remedy) else { return self }
    return dropLast(remedy.count) + ours
  }
}

extension TreeError {
  fileprivate var refusal: Errno? {
    if case .refused(let error) = reason { error } else { nil }
  }
}

extension WormholeError {
  /// The reason, for a sentence that has already said that something cannot be read.
  var briefReason: String {
    let prefix = "cannot read the property list: "
    return reason.hasPrefix(prefix) ? String(reason.dropFirst(prefix.count)) : reason
  }
}

extension CommandEnvironment {
  /// Reports what a walk over all names has left out, and ends the command.
  func end(_ faults: NameFaults, otherwise status: ExitStatus = .done) throws {
    for fault in faults.all { report(fault) }
    try (faults.all.isEmpty ? status : .badData).end()
  }
}

/// The exit status of the program; scripts rely on these numbers.
///
/// Statuses from 64 on come from `sysexits.h`, 124 from `timeout(1)`. A command that runs another
/// program ends with that program's status, by the rules of a shell; it may be any number, and the
/// sentence on standard error explains it.
struct ExitStatus: RawRepresentable, Hashable, Error {
  let rawValue: Int32

  static let done = ExitStatus(rawValue: 0)
  /// Missing, lost to another process, or another negative answer; a held lock, as with flock(1).
  static let no = ExitStatus(rawValue: 1)
  static let usage = ExitStatus(rawValue: 64)
  static let badData = ExitStatus(rawValue: 65)
  /// No process answers, or etcd does not.
  static let outOfReach = ExitStatus(rawValue: 69)
  static let inputOutput = ExitStatus(rawValue: 74)
  /// Another process has the role, the queue or the container.
  static let inUse = ExitStatus(rawValue: 75)
  static let permission = ExitStatus(rawValue: 77)
  static let deadline = ExitStatus(rawValue: 124)
  static let commandNotExecutable = ExitStatus(rawValue: 126)
  static let commandNotFound = ExitStatus(rawValue: 127)
  /// No process reads standard output any longer, as after the end of `head`: as if SIGPIPE had
  /// ended the program.
  static let brokenPipe = ExitStatus(rawValue: 128 + Signal.brokenPipe.rawValue)
}

extension ExitStatus {
  func end() throws(ExitStatus) { if self != .done { throw self } }

  /// The status of another program, as a shell gives it.
  init(_ termination: Termination) {
    switch termination {
    case .exited(let status): self.init(rawValue: status)
    case .killed(let signal): self.init(rawValue: 128 + signal)
    }
  }

  /// The exit status for an error.
  ///
  /// - Parameter hasTimeout: whether the command has a timeout: an unreachable process is then
  ///   late, whether it does not answer or does not listen.
  init(of error: any Error, hasTimeout: Bool = false) {
    self =
      switch error {
      case WormholeError.Code.clusterUnreachable where hasTimeout: .deadline
      case let error as CommandError: error.status
      case is InUse: .inUse
      case let error as WormholeError: Self.status(of: error)
      case let error as PresenterError: error.underlying.map { ExitStatus(of: $0) } ?? .inputOutput
      case let error as Errno: Self.status(of: error)
      case let error as TreeError: error.refusal.map { Self.status(of: $0) } ?? .inputOutput
      case let status as ExitStatus: status
      case is UsageError: .usage
      default: .inputOutput
      }
  }

  private static func status(of error: Errno) -> ExitStatus {
    let isDenied = [.accessDenied, .notPermitted, .readOnlyFileSystem].contains(error)
    return isDenied ? .permission : .inputOutput
  }

  private static func status(of error: WormholeError) -> ExitStatus {
    switch error.code {
    // A file at the container's place, which no permission would change.
    case .containerUnsafe where error.errorNumber == Errno.notDirectory.rawValue: .badData
    case .containerUnsafe, .unsafe, .permissionDenied: .permission
    case .formatTooNew, .notAValue, .notAnItem, .damaged, .unsupportedValue, .unexpectedValue,
      .nameCollision, .invalidSuiteName, .wrongType, .badImport, .badExport:
      .badData
    // With an error number, the kernel refused to write that much; the data may be right.
    case .tooLarge: error.errorNumber == nil ? .badData : .inputOutput
    // Another process has what this one had, or the answer is no.
    case .leaseLost, .replaced, .overtaken, .conflict, .cancelled, .notActive, .failed,
      .notAnswered:
      .no
    case .unreachable, .clusterUnreachable, .notHandled, .notLaunched: .outOfReach
    case .timedOut, .outcomeUnknown: .deadline
    case .notSupported: .usage
    case .fileAccess: error.errorNumber.map { status(of: Errno(rawValue: $0)) } ?? .inputOutput
    default: .inputOutput
    }
  }
}

extension String {
  var quoted: String { "\"\(self)\"" }

  /// Foreign text must not control the terminal: this escapes control characters except line
  /// breaks, and marks that change the direction of the text after them.
  var withoutControlCharacters: String { escapingControlCharacters { $0 != "\n" } }

  /// The text as one field of a line: a file's name may contain the characters that end a line or a
  /// field.
  var onOneLine: String { escapingControlCharacters { _ in true } }

  private func escapingControlCharacters(where isEscaped: (Unicode.Scalar) -> Bool) -> String {
    unicodeScalars.map { scalar in
      scalar.controlsTerminal && isEscaped(scalar) ? scalar.escaped(asASCII: true) : String(scalar)
    }.joined()
  }
}
