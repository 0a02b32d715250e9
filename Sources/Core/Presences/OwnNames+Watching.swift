import Containers
package import Monitoring
import SystemCalls

extension OwnNames {
  /// Calls a closure whenever the package may have a new name of a presence.
  ///
  /// - Parameter signal: Called on the monitor's thread, so it must be short.
  package func watchPresenceNames(
    _ signal: @escaping @Sendable () -> Void
  ) throws -> Watch {
    let kind = NameKind.ownPresence
    let root = container.root
    let path = root.path + "/" + kind.path
    return try reporting("watch the names of presences", path: path) {
      let prepare: @Sendable () throws -> Void = {
        try kind.make(in: root, at: root.handle().descriptor.rawValue)
      }
      try prepare()
      return ChangeMonitor.shared.watch(
        path: path, parents: kind.parents(in: root).dropLast(), prepare: prepare,
        hear: { _ in signal() })
    }
  }
}
