import AppGroup

extension AppGroupError {
  /// What the program exits with.
  var exitStatus: ExitStatus {
    switch code {
    case .containerUnsafe, .permissionDenied: .permission
    case .formatTooNew, .formatTooOld, .notAValue, .damaged, .unsupportedValue, .nameCollision:
      .badData
    // The kernel's refusal to write so much is not the data's fault.
    case .tooLarge: errorNumber == nil ? .badData : .inputOutput
    // Lost leases are made up for until the deadline.
    case .timedOut, .leaseLost: .deadline
    case .containerMissing, .queueFull, .noSpace, .tooManyOpenFiles, .invalidToken, .inputOutput:
      .inputOutput
    }
  }
}

extension AppGroupError {
  /// The reason where it is said already that something cannot be read.
  var briefReason: String {
    let prefix = "cannot read the property list: "
    return reason.hasPrefix(prefix) ? String(reason.dropFirst(prefix.count)) : reason
  }
}
