import Synchronization
import WormholePropertyLists

extension GroupDefaults {
  /// Adds a suite to the search list, after this suite and those added before.
  ///
  /// - Parameter suiteName: A group; for defaults of a given container, a suite in it.
  public func addSuite(named suiteName: String) {
    reporting(()) {
      guard suiteName != name else { return }
      let suite = try Suite.named(suiteName, in: container)
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
      let suite = try domainName == name ? suite() : Suite.existing(domainName, in: container)
      let contents = try suite?.contents() ?? [:]
      return contents.isEmpty ? nil : contents.mapValues(\.propertyListObject)
    }
  }

  /// Replaces the whole content of a suite in one step.
  public func setPersistentDomain(_ domain: [String: Any], forName domainName: String) {
    reporting(()) {
      let contents = try Self.contents(domain)
      if domainName == name { return try edit { $0 = contents } }
      try Suite.named(domainName, in: container).edit { $0 = contents }
      reportOwnChange()
    }
  }

  /// Removes the whole content of a suite in one step.
  public func removePersistentDomain(forName domainName: String) {
    reporting(()) {
      if domainName == name { return try edit { $0 = [:] } }
      try Suite.existing(domainName, in: container)?.edit { $0 = [:] }
      reportOwnChange()
    }
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

  /// Replaces a domain that is never stored: the command line's domain, which comes first in this
  /// object's search list; the domain of registered values, which comes last in every search list;
  /// or any other domain, which no search list contains.
  public func setVolatileDomain(_ domain: [String: Any], forName domainName: String) {
    reporting(()) {
      replaceVolatileDomain(domainName, by: try Self.contents(domain))
    }
  }

  /// Removes a domain that is never stored.
  public func removeVolatileDomain(forName domainName: String) {
    replaceVolatileDomain(domainName, by: nil)
  }

  private func replaceVolatileDomain(_ domainName: String, by contents: Suite.Contents?) {
    if domainName == Self.registrationDomain {
      Self.registered.withLock { $0 = contents ?? [:] }
    } else {
      surroundings.withLock { $0.volatileDomains[domainName] = contents }
    }
  }
}

/// The argument domain: `-key value` pairs on the command line, which precede all stored values.
///
/// As in swift-corelibs-foundation's UserDefaults.swift, a word that begins with "-" is a key if
/// the next word does not, and the next word is its value. An XML value is read as a property list
/// (`<integer>3</integer>` is enough). Every other value is a string, which the getters convert.
/// The originals also read OpenStep text here; the readers of this package refuse it.
enum ArgumentDomain {
  /// The argument domain of this process.
  static let ofProcess = parse(CommandLine.arguments)

  static func parse(_ arguments: [String]) -> Suite.Contents {
    var result: Suite.Contents = [:]
    var index = 0
    while index + 1 < arguments.count {
      let (word, next) = (arguments[index], arguments[index + 1])
      index += 1
      guard word.hasPrefix("-"), !next.hasPrefix("-") else { continue }
      index += 1
      if word != "-" { result[String(word.dropFirst())] = value(trimmed(next)) }
    }
    return result
  }

  private static func trimmed(_ text: String) -> String {
    let kept = text.drop { $0.isWhitespace }
    guard let last = kept.lastIndex(where: { !$0.isWhitespace }) else { return "" }
    return String(kept[...last])
  }

  private static func value(_ text: String) -> PropertyListValue {
    guard text.hasPrefix("<") else { return .string(text) }
    let isDocument = ["<?xml", "<!DOCTYPE", "<plist"].contains { text.hasPrefix($0) }
    let document = isDocument ? text : "<plist version=\"1.0\">\(text)</plist>"
    do throws(PropertyListError) {
      return try PropertyListValue(bytes: Array(document.utf8))
    } catch {
      // As in the original, a text that is not a property list is a string with these characters.
      return .string(text)
    }
  }
}
