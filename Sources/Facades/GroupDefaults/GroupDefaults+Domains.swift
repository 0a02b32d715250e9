import Synchronization
import WormholePropertyLists

extension GroupDefaults {
  /// Adds a suite to the search list, after this suite and those added before.
  ///
  /// - Parameter suiteName: A group; for defaults of a given container, a suite in it.
  public func addSuite(named suiteName: String) {
    reporting(()) {
      guard suiteName != name else { return }
      let suite = try place.suite(suiteName)
      surroundings.withLock { surroundings in
        surroundings.addedSuites.removeAll { $0.name == suiteName }
        surroundings.addedSuites.append((suiteName, suite))
      }
    }
  }

  /// Removes a suite from the search list.
  public func removeSuite(named suiteName: String) {
    surroundings.withLock { $0.addedSuites.removeAll { $0.name == suiteName } }
  }

  // MARK: Persistent domains

  /// Returns the whole content of a suite, or nil if it is empty.
  ///
  /// - Parameter domainName: A group; for defaults of a given container, a suite in it.
  public func persistentDomain(forName domainName: String) -> [String: Any]? {
    reporting(nil) {
      let suite = domainName == name ? try self.suite() : try place.existingSuite(domainName)
      let contents = try suite?.contents() ?? [:]
      return contents.isEmpty ? nil : contents.mapValues(\.propertyListObject)
    }
  }

  /// Replaces the whole content of a suite in one step.
  public func setPersistentDomain(_ domain: [String: Any], forName domainName: String) {
    reporting(()) {
      let contents = try Self.contents(domain)
      try persistentSuite(domainName).edit { $0 = contents }
      reportOwnChange()
    }
  }

  /// Removes the whole content of a suite in one step.
  public func removePersistentDomain(forName domainName: String) {
    reporting(()) {
      let suite = domainName == name ? try self.suite() : try place.existingSuite(domainName)
      try suite?.edit { $0 = [:] }
      reportOwnChange()
    }
  }

  private func persistentSuite(_ domainName: String) throws -> Suite {
    domainName == name ? try suite() : try place.suite(domainName)
  }

  // MARK: Volatile domains

  /// The names of the domains that are never stored.
  public var volatileDomainNames: [String] {
    let names = surroundings.withLock { Set($0.volatileDomains.keys) }
    return names.union([Self.registrationDomain]).sorted()
  }

  /// Returns the content of a domain that is never stored; empty for an unknown one.
  public func volatileDomain(forName domainName: String) -> [String: Any] {
    let contents =
      domainName == Self.registrationDomain
      ? Self.registered.withLock(\.self)
      : surroundings.withLock { $0.volatileDomains[domainName] ?? [:] }
    return contents.mapValues(\.propertyListObject)
  }

  /// Replaces a domain that is never stored: the domain of the command line, which comes first in
  /// the search list of this object, the domain of registered values, which comes last in every
  /// search list, or any other domain, which no search list contains.
  public func setVolatileDomain(_ domain: [String: Any], forName domainName: String) {
    reporting(()) {
      let contents = try Self.contents(domain)
      if domainName == Self.registrationDomain {
        Self.registered.withLock { $0 = contents }
      } else {
        surroundings.withLock { $0.volatileDomains[domainName] = contents }
      }
    }
  }

  /// Removes a domain that is never stored.
  public func removeVolatileDomain(forName domainName: String) {
    if domainName == Self.registrationDomain {
      Self.registered.withLock { $0 = [:] }
    } else {
      surroundings.withLock { $0.volatileDomains[domainName] = nil }
    }
  }
}
