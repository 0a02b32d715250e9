import AppGroup

extension AppGroupError {
  /// What the program exits with.
  var exitStatus: ExitStatus {
    switch code {
    case .containerUnsafe, .permissionDenied: .permission
    case .formatTooNew, .notAValue, .damaged, .unsupportedValue, .nameCollision: .badData
    // The kernel's refusal to write so much is not the data's fault.
    case .tooLarge: errorNumber == nil ? .badData : .inputOutput
    // Lost leases are made up for until the deadline.
    case .timedOut, .leaseLost: .deadline
    case .containerMissing, .noSpace, .tooManyOpenFiles, .invalidToken, .inputOutput: .inputOutput
    }
  }
}
