// Each code is a member of the error type, too, as with Apple's: `WCError.notReachable`.
extension WCError {
  /// See `Code.genericError`.
  public static var genericError: Code { .genericError }
  /// See `Code.sessionNotSupported`.
  public static var sessionNotSupported: Code { .sessionNotSupported }
  /// See `Code.sessionMissingDelegate`.
  public static var sessionMissingDelegate: Code { .sessionMissingDelegate }
  /// See `Code.sessionNotActivated`.
  public static var sessionNotActivated: Code { .sessionNotActivated }
  /// See `Code.deviceNotPaired`.
  public static var deviceNotPaired: Code { .deviceNotPaired }
  /// See `Code.watchAppNotInstalled`.
  public static var watchAppNotInstalled: Code { .watchAppNotInstalled }
  /// See `Code.notReachable`.
  public static var notReachable: Code { .notReachable }
  /// See `Code.invalidParameter`.
  public static var invalidParameter: Code { .invalidParameter }
  /// See `Code.payloadTooLarge`.
  public static var payloadTooLarge: Code { .payloadTooLarge }
  /// See `Code.payloadUnsupportedTypes`.
  public static var payloadUnsupportedTypes: Code { .payloadUnsupportedTypes }
  /// See `Code.messageReplyFailed`.
  public static var messageReplyFailed: Code { .messageReplyFailed }
  /// See `Code.messageReplyTimedOut`.
  public static var messageReplyTimedOut: Code { .messageReplyTimedOut }
  /// See `Code.fileAccessDenied`.
  public static var fileAccessDenied: Code { .fileAccessDenied }
  /// See `Code.deliveryFailed`.
  public static var deliveryFailed: Code { .deliveryFailed }
  /// See `Code.insufficientSpace`.
  public static var insufficientSpace: Code { .insufficientSpace }
  /// See `Code.sessionInactive`.
  public static var sessionInactive: Code { .sessionInactive }
  /// See `Code.transferTimedOut`.
  public static var transferTimedOut: Code { .transferTimedOut }
  /// See `Code.companionAppNotInstalled`.
  public static var companionAppNotInstalled: Code { .companionAppNotInstalled }
  /// See `Code.watchOnlyApp`.
  public static var watchOnlyApp: Code { .watchOnlyApp }
}
