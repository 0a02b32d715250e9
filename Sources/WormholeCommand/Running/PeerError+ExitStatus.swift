import PeerConnectivity

extension PeerError {
  /// What the program exits with.
  var exitStatus: ExitStatus {
    switch code {
    case .unreachable, .cancelled, .failed, .notHandled, .notAnswered, .notActive, .replaced,
      .notLaunched:
      .no
    case .timedOut: .deadline
    case .tooLarge, .unsupportedValue, .unexpectedValue, .damaged: .badData
    case .queueFull, .fileAccess, .noSpace, .inputOutput:
      underlying?.exitStatus ?? .inputOutput
    }
  }
}
