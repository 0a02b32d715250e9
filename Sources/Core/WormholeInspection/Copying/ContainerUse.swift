import Wormhole

/// The known users of a container: the processes that are present in it, and the consumers of its
/// queues. Processes that only read and write values are not seen.
enum ContainerUse {
  /// Refuses an action while a process uses the container.
  ///
  /// - Throws: `AppGroupError.timedOut` with the process.
  static func refuse(_ action: String, _ container: SharedContainer, remedy: String) throws {
    let kinds = [NameKind.Primitive.presence, .consumer].flatMap {
      [NameKind($0), NameKind($0, isOwn: true)]
    }
    for kind in kinds {
      for name in try container.identifiers(of: kind) {
        let presence = Presence(container: container, name: name, kind: kind)
        guard let user = try presence.members().first else { continue }
        throw AppGroupError(
          .timedOut, action, path: container.location,
          reason: "\(user.program) (\(user.processID)) uses it: it is present as \"\(name)\"",
          remedy: remedy)
      }
    }
  }
}
