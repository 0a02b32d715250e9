/// How something is sent to the other side.
enum Delivery: String, CaseIterable, Sendable {
  /// At once, or not at all: the other side must run, or be started for it.
  case failable
  /// Sooner or later, all of it and in order, also to a side that does not run now.
  case guaranteed
  /// Sooner or later, and only the latest.
  case highPriority
}

/// The keys of what is sent.
enum ConnectivityUserInfoKey: String {
  case purchased
  case qrCodes
  case verified
  case nextShow
}
