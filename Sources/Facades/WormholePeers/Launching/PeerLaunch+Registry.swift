public import Wormhole

extension PeerLaunch {
  /// The registrations of a container: how each peer is started.
  ///
  /// ```swift
  /// let registry = PeerLaunch.Registry(in: container)
  /// print(try registry.launch(of: "phone")?.program ?? "phone is not started by anybody")
  /// print(try registry.remainingLaunches(of: "phone") ?? -1, "launches are left today")
  /// ```
  public struct Registry: Sendable {
    private let container: SharedContainer

    /// The registrations of a container; nothing is read or written before they are used.
    public init(in container: SharedContainer) { self.container = container }

    /// Registers how a peer is started; usually a program registers its own peer.
    ///
    /// The registration is followed only while no other user can change it. Therefore a container
    /// that a Unix group shares accepts none, nor does one on etcd: its members could make each
    /// other run programs.
    ///
    /// - Throws: `PeerError`: `unsupportedValue` for a program without an absolute path, text with a NUL,
    ///   a variable that is empty or has a "=" in its name, or a negative budget; `notLaunched` where
    ///   others could change it; or an error of the container.
    /// - Complexity: replaces one value.
    public func set(_ launch: PeerLaunch, for peer: String) throws {
      let action = "register how to start \"\(peer)\""
      try betweenPeers(action, peer) {
        if let reason = launch.unsuitability {
          throw PeerError(.unsupportedValue, action, peer: peer, reason: reason)
        }
        let value = try value(of: peer)
        try confirmLocal(action, peer)
        try value.replace(with: launch.propertyList)
        do {
          _ = try value.privateContent()
        } catch let exposure as Exposure {
          try value.remove()
          throw PeerError(
            .notLaunched, action, peer: peer, reason: "others could change it: \(exposure)",
            remedy: "use a container that only this user may write to")
        }
      }
    }

    /// How a peer is started; nil if it is not registered.
    ///
    /// - Throws: `PeerError`: `damaged` for a value that cannot be read as a registration, or an error of the container.
    /// - Complexity: reads one value.
    public func launch(of peer: String) throws -> PeerLaunch? {
      let action = "read how to start \"\(peer)\""
      return try betweenPeers(action, peer) {
        let value = try value(of: peer)
        return try value.read(limits: PeerLaunch.limits).map { content in
          guard let launch = PeerLaunch(content) else {
            throw PeerLaunch.damaged(action, peer, path: value.path)
          }
          return launch
        }
      }
    }

    /// Removes how a peer is started. The count of today's starts stays.
    public func remove(_ peer: String) throws {
      try betweenPeers("remove how to start \"\(peer)\"", peer) { _ = try value(of: peer).remove() }
    }

    /// How often a peer may still be started today; nil for no limit or no registration.
    ///
    /// - Complexity: reads two values.
    public func remainingLaunches(of peer: String) throws -> Int? {
      guard let budget = try launch(of: peer)?.budgetPerDay else { return nil }
      return try betweenPeers("read how often \"\(peer)\" was started", peer) {
        max(0, budget - (try LaunchBook(peer, container).read().count(at: .now())))
      }
    }

    /// The file with the output of a peer's last start; nil if it was never started.
    public func output(of peer: String) throws -> String? {
      try betweenPeers("find the output of \"\(peer)\"", peer) {
        try PeerNames.check(peer)
        let book = LaunchBook(peer, container)
        guard let start = try book.read().start, let place = book.place(of: start),
          try place.output() != nil
        else { return nil }
        return place.outputPath
      }
    }

    private func confirmLocal(_ action: String, _ peer: String) throws {
      do {
        try container.requireDirectory(action, remedy: "start it yourself, or as a service")
      } catch let error as AppGroupError {
        throw PeerError(
          .notLaunched, action, peer: peer, reason: "others could change it: \(error.reason)",
          remedy: error.remedy, underlying: error)
      }
    }

    private func value(of peer: String) throws -> Value {
      try PeerNames.check(peer)
      return container.own.value(PeerNames.launch(peer))
    }
  }
}
