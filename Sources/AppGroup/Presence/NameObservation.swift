import SystemCalls

extension OwnNames {
  /// Calls a closure whenever a name of the package may have come under which somebody can be present.
  ///
  /// - Parameter signal: called on the monitor's thread, so it must be short.
  package func observePresenceNames(_ signal: @escaping @Sendable () -> Void) throws
    -> NameObservation
  {
    let kind = NameKind.ownPresence
    let root = container.root
    let path = root.path + "/" + kind.path
    return try reporting("watch the names of presences", path: path) {
      let prepare: @Sendable () throws -> Void = {
        try kind.make(in: root, at: root.handle().descriptor.rawValue)
      }
      try prepare()
      return NameObservation(
        ChangeMonitor.shared.watch(
          path: path, parents: kind.parents(in: root).dropLast(), prepare: prepare,
          hear: { _ in signal() }))
    }
  }
}

/// An observer of names, until it is cancelled or forgotten.
package final class NameObservation: Sendable {
  private let watch: Watch

  init(_ watch: Watch) { self.watch = watch }

  package func cancel() { watch.cancel() }
}
