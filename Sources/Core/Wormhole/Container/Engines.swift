import Synchronization
import WormholeSystem

/// The place of a container outside directories, as an engine understands it.
package protocol EngineLocation: Sendable, CustomStringConvertible {
  /// Returns the place of a name within this one.
  func appending(_ component: String) -> Self

  /// Opens the container there, or creates it; nil if there is none. `limit` also ends the calls
  /// through the engine.
  ///
  /// - Parameter ofGroup: Whether it is a group's, which each change makes again if it was removed.
  func open(creates: Bool, ofGroup: Bool, _ limit: CallLimit) throws -> (any ContainerEngine)?
}

/// The engines that this program has besides directories, by the schemes of their locations: the
/// engine for "etcds" opens a container at "etcds://host/prefix".
package enum Engines {
  /// Returns the location that a text with one of its schemes names; throws if the text is invalid.
  package typealias Parser = @Sendable (_ text: String) throws -> any EngineLocation

  private static let parsers = Mutex<[String: Parser]>([:])

  /// Adds an engine; adding it again has no effect.
  ///
  /// - Parameter schemes: In lower case.
  package static func register(_ schemes: [String], _ parser: @escaping Parser) {
    parsers.withLock { parsers in for scheme in schemes { parsers[scheme] = parser } }
  }

  /// Whether a text names a place on another engine: it begins with a scheme and "://".
  package static func isMeant(by text: String) -> Bool { scheme(of: text) != nil }

  /// Returns the place that a text names; nil for a directory's path.
  ///
  /// - Throws: `WormholeError`: `notSupported` if this program has no engine for it; otherwise as the engine.
  package static func location(_ text: String) throws -> (any EngineLocation)? {
    guard let scheme = scheme(of: text) else { return nil }
    guard let parser = parsers.withLock({ $0[scheme] }) else {
      throw WormholeError(
        .notSupported, "open the container", path: withoutPassword(text),
        reason: "this program has no engine for \(scheme)://",
        remedy: "build it with the module of that engine, and register that at its start")
    }
    return try parser(text)
  }

  /// Returns the place of a group's container on another engine; nil if it is a directory.
  static func location(forGroup group: String) throws -> (any EngineLocation)? {
    let variable = "WORMHOLE_GROUPS"
    guard let base = Program.environment(variable), !base.isEmpty else { return nil }
    guard let place = try location(base) else {
      throw WormholeError(
        .containerMissing, "find the container of group \"\(group)\"", path: base,
        reason: "\(variable) names a directory, but is the place of groups on etcd",
        remedy: "unset it, and set XDG_DATA_HOME for groups in another directory")
    }
    guard !group.isEmpty else { throw ContainerLocation.empty }
    return place.appending(EncodedName(group).component)
  }

  /// Returns a text for people and logs, without its password, even if the password is not encoded
  /// correctly.
  package static func withoutPassword(_ text: String) -> String {
    guard isMeant(by: text), let slash = text.firstIndex(of: "/") else { return text }
    let rest = text[slash...].dropFirst(2)
    guard let at = rest.lastIndex(of: "@"), let colon = rest[..<at].firstIndex(of: ":") else {
      return text
    }
    return String(text[..<colon] + text[at...])
  }

  private static func scheme(of text: String) -> String? {
    let name = text.prefix { $0.isASCII && $0.isLetter }
    guard !name.isEmpty, text.dropFirst(name.count).hasPrefix("://") else { return nil }
    return name.lowercased()
  }
}
