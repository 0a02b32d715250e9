import Synchronization

/// The peers that this process currently is in each container, for the records of its publications.
package enum ActivePeers {
  private static let names = Mutex<[String: [String]]>([:])
  /// Most processes are not peers, and need not look.
  private static let count = Atomic(0)

  package static func add(_ name: String, in container: String) {
    names.withLock { $0[container, default: []].append(name) }
    count.add(1, ordering: .relaxed)
  }

  package static func remove(_ name: String, in container: String) {
    names.withLock { names in
      guard let index = names[container]?.firstIndex(of: name) else { return }
      names[container]?.remove(at: index)
      count.subtract(1, ordering: .relaxed)
      if names[container]?.isEmpty ?? false { names[container] = nil }
    }
  }

  /// Returns the peer that this process is in a container; nil if it is not a peer, or several.
  ///
  /// - Parameter container: The path of its directory.
  package static func single(in container: String) -> String? {
    guard count.load(ordering: .relaxed) > 0 else { return nil }
    return names.withLock { names in
      guard let here = names[container], here.count == 1 else { return nil }
      return here[0]
    }
  }
}
