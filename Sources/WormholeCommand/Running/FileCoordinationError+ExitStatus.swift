import FileCoordination

extension FileCoordinationError {
  /// What the program exits with.
  var exitStatus: ExitStatus {
    switch code {
    // Others were faster.
    case .overtaken, .cancelled, .conflict: .no
    case .timedOut: .deadline
    case .notAnItem: .badData
    case .unsafe, .permissionDenied: .permission
    case .directoryMissing, .noSpace, .tooManyOpenFiles, .inputOutput: .inputOutput
    }
  }
}
