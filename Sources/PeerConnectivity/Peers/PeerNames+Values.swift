extension PeerNames {
  /// Whether a value of this name is a peer's: a context, how it is started, its companions.
  package static func holdsValue(_ identifier: String) -> Bool {
    identifier.utf8.starts(with: "@peer/".utf8)
  }
}
