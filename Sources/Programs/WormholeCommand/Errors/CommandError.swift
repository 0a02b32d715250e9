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
  /// Whether this process itself lacked something or failed, which says nothing about the object.
  let isOwn: Bool

  init(
    cannot action: String, because reason: String, status: ExitStatus = .inputOutput,
    isOwn: Bool = false
  ) {
    self.action = action
    self.reason = reason
    self.status = status
    self.isOwn = isOwn
  }

  /// - Parameter status: By default a kernel error's.
  init(
    cannot action: String, because error: any Error, status: ExitStatus? = nil, isOwn: Bool = false
  ) {
    let number = error as? Errno
    self.init(
      cannot: action, because: "\(error)",
      status: status ?? number.map { ExitStatus(of: $0) } ?? .inputOutput,
      isOwn: isOwn || number?.isShortage == true)
  }

  /// A negative answer, which is not a failure.
  static func no(_ action: String, because reason: String) -> CommandError {
    CommandError(cannot: action, because: reason, status: .no)
  }

  /// The same error with what was done anyway, so that no one does it twice.
  func adding(_ fact: String) -> CommandError {
    CommandError(cannot: action, because: "\(reason); \(fact)", status: status, isOwn: isOwn)
  }

  /// `cannot read seats: the file is damaged`; the program puts its name before it.
  var description: String { "cannot \(action): \(reason)" }
}

extension Errno {
  /// Whether there were too few processes, descriptors or bytes of memory: the same call may succeed
  /// later.
  var isShortage: Bool {
    // ENOMEM
    isLackOfDescriptors || self == .wouldBlock || self == Errno(rawValue: 12)
  }
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

extension WormholeError {
  /// The reason, for a sentence that has already said that something cannot be read.
  var briefReason: String {
    let prefix = "cannot read the property list: "
    return reason.hasPrefix(prefix) ? String(reason.dropFirst(prefix.count)) : reason
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
