import Synchronization

/// The peers that this process is at the moment, in each container, for the records of what it
/// publishes there.
package enum ActivePeers {
  private static let names = Mutex<[String: [String]]>([:])

  package static func add(_ name: String, in container: String) {
    names.withLock { $0[container, default: []].append(name) }
  }

  package static func remove(_ name: String, in container: String) {
    names.withLock { names in
      guard let index = names[container]?.firstIndex(of: name) else { return }
      names[container]?.remove(at: index)
      if names[container]?.isEmpty ?? false { names[container] = nil }
    }
  }

  /// Returns the peer that this process is in a container; nil if it is none, or several.
  ///
  /// - Parameter container: The path of its directory.
  package static func single(in container: String) -> String? {
    names.withLock { names in
      guard let here = names[container], here.count == 1 else { return nil }
      return here[0]
    }
  }
}
