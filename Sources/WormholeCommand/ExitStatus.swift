/// How the program ends; scripts rely on these numbers.
///
/// Those from 64 are of `sysexits.h`, 124 is that of `timeout(1)`.
enum ExitStatus: Int32, Sendable {
  case done = 0
  /// The honest no: no message there, lock busy, peer unreachable, command failed.
  case no = 1
  case usage = 64
  case badData = 65
  case inputOutput = 74
  case permission = 77
  /// The deadline passed.
  case deadline = 124
}
