import GroupDefaults
import Wormhole
import WormholeFiles
import WormholePeers
import WormholeSystem
import WormholeTerminals
import WormholeToolkit

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

extension TreeError {
  fileprivate var refusal: Errno? {
    if case .refused(let error) = reason { error } else { nil }
  }
}
