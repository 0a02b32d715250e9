import AppGroup
import SystemCalls

/// For commands that only look, or only listen: nothing is made.
extension ContainerSelection {
  /// How often somebody who listens looks whether a group's container has been made.
  private static let interval: Duration = .milliseconds(100)

  /// Where the container is, or would be.
  func path() throws -> String {
    switch self {
    case .group(let group): try SharedContainer.path(ofGroup: group)
    case .directory(let directory): directory
    }
  }

  /// Opens the container without making anything.
  ///
  /// - Returns: nil for a directory that is no container yet.
  /// - Throws: `AppGroupError` with its remedy; `CommandError` for a group whose container nobody
  ///   has made.
  func openExisting() throws -> SharedContainer? {
    switch self {
    case .group(let group):
      guard let container = try Self.existing(group) else { throw try noGroup(group) }
      return container
    case .directory(let directory): return try SharedContainer.existing(path: directory)
    }
  }

  /// The container of somebody who listens.
  struct Listening {
    let container: SharedContainer
    /// Whether it was made while this process waited for it: then all that is in it is new, and
    /// 'listening' has been said.
    let isNew: Bool
  }

  /// Opens the container for somebody who listens. Where a group has none, that is said, and the
  /// first who uses the group is waited for: programs start in any order, and a slip in the name
  /// makes nothing.
  ///
  /// - Parameter endsWithReader: as for `tellListening`.
  /// - Returns: nil when the deadline has passed.
  func openToListen(
    until deadline: ContinuousClock.Instant?, _ environment: CommandEnvironment,
    endsWithReader: Bool = true
  ) throws -> Listening? {
    guard case .group(let group) = self else {
      return Listening(container: try open(), isNew: false)
    }
    if let container = try Self.existing(group) {
      return Listening(container: container, isNew: false)
    }
    environment.tellListening(endsWithReader: endsWithReader)
    environment.tell(
      "nobody has used group \(group.quoted) yet; \(try hint())waiting until somebody does")
    while true {
      if let container = try Self.existing(group) {
        return Listening(container: container, isNew: true)
      }
      let now = ContinuousClock.now
      guard now < deadline ?? .now + Self.interval else { return nil }
      pauseThread(min(Self.interval, deadline.map { $0 - now } ?? Self.interval))
    }
  }

  /// `did you mean 'group.example'? `, of those that exist; or nothing.
  func hint() throws -> String {
    guard case .group(let group) = self else { return "" }
    return Suggestion.sentence(for: group, among: try ContainerLocation.groups().map(\.identifier))
  }

  /// - Returns: nil when nobody has made it.
  private static func existing(_ group: String) throws -> SharedContainer? {
    let path = try SharedContainer.path(ofGroup: group)
    do {
      return try SharedContainer.existing(path: path, group: group)
    } catch let error as AppGroupError where error.code == .containerMissing {
      return nil
    }
  }

  private func noGroup(_ group: String) throws -> CommandError {
    CommandError(
      verb: "open", object: "the container of group \(group.quoted) (\(try path()))",
      reason: "there is none yet; \(try hint())the first message makes it", status: .no)
  }
}
