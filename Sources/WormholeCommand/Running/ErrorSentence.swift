import AppGroup
import GroupDefaults
import PeerConnectivity

/// An error as the program says it. The libraries' errors tell programmers what to call; of content
/// that cannot be read, `wormhole doctor` tells which command mends it.
enum ErrorSentence {
  static func of(_ error: any Error) -> String {
    switch error {
    case let error as AppGroupError
    where [.damaged, .notAValue].contains(error.code)
      || error.code == .tooLarge && error.errorNumber == nil:
      with("'wormhole doctor' tells how to mend it", insteadOf: error.remedy, "\(error)")
    case let error as GroupDefaultsError where error.code == .damaged:
      with(
        "nothing is written over it; 'wormhole doctor' tells how to put it aside",
        insteadOf: error.remedy, "\(error)")
    case let error as PeerError where error.code == .damaged:
      with("'wormhole doctor' tells how to put it aside", insteadOf: error.remedy, "\(error)")
    default: "\(error)"
    }
  }

  /// A sentence ends with its remedy, if there is one.
  private static func with(
    _ ours: String, insteadOf remedy: String?, _ sentence: String
  ) -> String {
    guard let remedy, sentence.hasSuffix(remedy) else { return sentence }
    return sentence.dropLast(remedy.count) + ours
  }
}

extension CommandEnvironment {
  /// Says what went wrong, where the work goes on all the same.
  func tell(_ error: any Error) { tell(ErrorSentence.of(error)) }
}
