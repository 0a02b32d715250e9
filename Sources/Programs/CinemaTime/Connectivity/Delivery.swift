/// The way in which content is sent to the other side.
enum Delivery: String, CaseIterable, Sendable {
  /// At once or not at all: the other side must run, or be started for it.
  case failable
  /// Eventually, complete and in order, even if the other side does not run now.
  case guaranteed
  /// Eventually, and only the latest.
  case highPriority
}

/// The keys of the content.
enum ConnectivityUserInfoKey: String {
  case purchased
  case qrCodes
  case verified
  case nextShow
}
