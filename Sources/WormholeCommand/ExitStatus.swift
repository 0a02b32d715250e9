import SystemCalls

/// How the program ends; scripts rely on these numbers.
///
/// Those from 64 are of `sysexits.h`, 124 is that of `timeout(1)`. A command that runs another one ends as
/// that one did, by the rules of a shell: any number, then, which the sentence on standard error explains.
struct ExitStatus: RawRepresentable, Hashable, Sendable {
  let rawValue: Int32

  static let done = ExitStatus(rawValue: 0)
  /// There is no such message, the lock is busy, the peer is unreachable, something did not go well.
  static let no = ExitStatus(rawValue: 1)
  static let usage = ExitStatus(rawValue: 64)
  static let badData = ExitStatus(rawValue: 65)
  static let inputOutput = ExitStatus(rawValue: 74)
  static let permission = ExitStatus(rawValue: 77)
  /// The deadline passed.
  static let deadline = ExitStatus(rawValue: 124)
  /// There is the other command, but it cannot be run.
  static let commandNotExecutable = ExitStatus(rawValue: 126)
  static let commandNotFound = ExitStatus(rawValue: 127)
  /// Nobody reads standard output any more: as if SIGPIPE had ended the program.
  static let brokenPipe = ExitStatus(rawValue: 128 + Signal.brokenPipe.rawValue)
}

extension ExitStatus {
  /// As another command ended.
  init(_ termination: Termination) {
    switch termination {
    case .exited(let status): self.init(rawValue: status)
    case .killed(let signal): self.init(rawValue: 128 + signal)
    }
  }
}
