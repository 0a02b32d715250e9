public import FoundationEssentials
public import Wormhole
package import WormholeInspection
import WormholePropertyLists

/// A whole suite as one value of a program's type: a property for each key.
extension GroupDefaults {
  /// Returns the suite as a type of the program, or nil if nothing was ever stored.
  ///
  /// - Throws: `WormholeError.wrongType` for keys that are missing or have another shape than
  ///   in the type; as `read(forKey:)`.
  public func readSuite<Content: Decodable>(
    as type: Content.Type = Content.self
  ) throws -> Content? {
    try Self.content(suite().contents())
  }

  /// Changes several keys in one step, as properties of a program's type. Keys that the type does
  /// not have keep their values.
  ///
  /// - Parameters:
  ///   - type: A type that is encoded as a dictionary.
  ///   - durability: What the change survives.
  ///   - deadline: The latest instant to wait for other changes of the suite.
  ///   - body: Receives the suite, nil if nothing is stored, and leaves the new one there; nil
  ///     removes the type's keys. It runs again if the lease was lost.
  /// - Returns: The result of `body`.
  /// - Throws: The error of `body`, or as `readSuite` and `write`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func updateSuite<Content: Codable & Sendable, Result: Sendable>(
    as type: Content.Type = Content.self, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil,
    _ body: @escaping @Sendable (inout Content?) throws -> Result
  ) throws -> Result {
    try edit(.init(durability, until: deadline), Self.edited(body))
  }

  /// Changes several keys in one step; see the form without `async`.
  public func updateSuite<Content: Codable & Sendable, Result: Sendable>(
    as type: Content.Type = Content.self, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil,
    _ body: @escaping @Sendable (inout Content?) throws -> Result
  ) async throws -> Result {
    try await edit(.init(durability, until: deadline), Self.edited(body))
  }

  private static func edited<Content: Codable & Sendable, Result>(
    _ body: @escaping @Sendable (inout Content?) throws -> Result
  ) -> @Sendable (inout Suite.Contents) throws -> Result {
    { contents in
      var content: Content? = try Self.content(contents)
      let known = try keys(of: content)
      let result = try body(&content)
      for key in known.keys { contents[key] = nil }
      contents.merge(try keys(of: content)) { $1 }
      return result
    }
  }

  private static func content<Content: Decodable>(_ contents: Suite.Contents) throws -> Content? {
    guard !contents.isEmpty else { return nil }
    do {
      return try PropertyListValue.dictionary(contents).decode(as: Content.self)
    } catch {
      throw WormholeError(
        .wrongType, "read the suite as \(Content.self)", reason: "it has another shape: \(error)",
        remedy: "make the properties of missing keys optional")
    }
  }

  private static func keys(of content: (some Encodable)?) throws -> Suite.Contents {
    guard let content else { return [:] }
    guard let keys = try PropertyListValue(encoding: content).dictionaryValue else {
      throw WormholeError(
        .unsupportedValue, "write the suite as \(type(of: content))",
        reason: "it is not encoded as a dictionary", remedy: "encode it with keys")
    }
    return keys
  }
}

extension GroupDefaults {
  /// How an import treats existing keys.
  ///
  /// ```swift
  /// try GroupDefaults(in: container).importSuite(from: file, .merging)
  /// ```
  public enum ImportMode: Sendable, Hashable {
    /// Keeps keys that are not imported.
    case merging
    /// Removes keys that are not imported.
    case replacing
  }

  /// The format of an export.
  ///
  /// ```swift
  /// try GroupDefaults(in: container).exportSuite(as: .xml).write(to: file)
  /// ```
  public enum ExportFormat: Sendable, Hashable {
    /// XML, laid out as Apple's tools do; dates lose their fractions of a second.
    case xml
    /// Binary, version 00.
    case binary
  }

  /// Stores the content of a property list in one step: a file of `~/Library/Preferences`, or the
  /// output of `defaults export`, `plutil` or `exportSuite`.
  ///
  /// - Parameters:
  ///   - data: An XML or binary property list from any source, with a dictionary at its top.
  ///   - mode: How stored keys that are not imported are treated.
  ///   - durability: What the import survives.
  ///   - deadline: The latest instant to wait for other changes of the same suite.
  /// - Returns: The number of imported keys.
  /// - Throws: `WormholeError.badImport` for anything else, for example an archive of
  ///   Objective-C objects or a hostile file; otherwise as `write`. If it throws, nothing has
  ///   changed.
  @discardableResult
  public func importSuite(
    from data: Data, _ mode: ImportMode, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) throws -> Int {
    try importSuite([UInt8](data), path: "", mode, terms: ChangeTerms(durability, until: deadline))
  }

  /// Stores the content of a property-list file; see the form for data.
  ///
  /// - Throws: Also `WormholeError` for a file that cannot be read, is not regular, or is larger
  ///   than `SharedContainer.maximumValueBytes`.
  @discardableResult
  public func importSuite(
    from file: URL, _ mode: ImportMode, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) throws -> Int {
    let bytes = try ForeignFile.read(file.path, maximumBytes: SharedContainer.maximumValueBytes)
    return try importSuite(
      bytes, path: file.path, mode, terms: ChangeTerms(durability, until: deadline))
  }

  private func importSuite(
    _ bytes: [UInt8], path: String, _ mode: ImportMode, terms: ChangeTerms
  ) throws -> Int {
    let contents = try Self.imported(bytes, path: path)
    try edit(terms) { stored in
      switch mode {
      case .merging: stored.merge(contents) { $1 }
      case .replacing: stored = contents
      }
    }
    return contents.count
  }

  private static func imported(_ bytes: [UInt8], path: String) throws -> Suite.Contents {
    let reason: String
    do throws(PropertyListError) {
      if case .dictionary(let contents) = try PropertyListValue(bytes: bytes) { return contents }
      reason = "it is a property list, but not a dictionary"
    } catch {
      reason = "\(error)"
    }
    throw WormholeError(
      .badImport, "import defaults", path: path, reason: reason,
      remedy: "provide an XML or binary property list with a dictionary at its top")
  }

  /// Returns the suite's content as a property list that Apple's and other tools can read.
  ///
  /// - Throws: `WormholeError.damaged`, or `badExport` for content that XML cannot express,
  ///   such as a string with a control character; `WormholeError`.
  public func exportSuite(as format: ExportFormat) throws -> Data {
    let suite = try suite()
    let contents = PropertyListValue.dictionary(try suite.contents())
    do throws(PropertyListError) {
      switch format {
      case .xml: return try contents.xmlData()
      case .binary: return try contents.binaryData()
      }
    } catch {
      throw WormholeError(
        .badExport, "export the defaults", path: suite.value.path, reason: "\(error)",
        remedy: format == .xml ? "export them as a binary property list" : nil)
    }
  }
}

/// For programs that show a container to people.
extension GroupDefaults {
  /// Returns what one of the package's values holds, if it holds defaults; nil for any other name.
  package static func use(ofOwnValue name: String) -> OwnUse? {
    let (isDefaults, suite) = suite(ofOwnValue: name)
    guard isDefaults else { return nil }
    let title =
      suite.map { "the defaults of the suite \"\($0)\"" } ?? "the defaults of the container"
    return OwnUse(title, is: "dictionary of defaults") { $0.dictionaryValue != nil }
  }

  /// Returns whether one of the package's values holds defaults, and of which suite; nil for the
  /// container's own.
  package static func suite(ofOwnValue name: String) -> (isDefaults: Bool, name: String?) {
    if name == Suite.containers { return (true, nil) }
    guard name.utf8.starts(with: Suite.prefix.utf8) else { return (false, nil) }
    return (true, String(decoding: name.utf8.dropFirst(Suite.prefix.utf8.count), as: UTF8.self))
  }

  /// Removes the suite with all its keys in one step, whatever its file contains.
  ///
  /// - Returns: Whether there was one.
  /// - Throws: As `write`.
  package func removeSuite(durability: Durability = .standard) throws -> Bool {
    try suite().value.remove(durability: durability)
  }

  /// Returns the names of a container's suites, sorted; nil, for the container's own, comes first.
  ///
  /// - Parameter faults: Takes the entries that cannot be names.
  /// - Returns: The names, including removed suites, whose `storedValues` are nil.
  /// - Throws: `WormholeError`.
  package static func suiteNames(
    in container: SharedContainer, _ faults: inout NameFaults
  ) throws -> [String?] {
    let names = try container.identifiers(of: .ownValue, &faults).map { suite(ofOwnValue: $0) }
      .filter(\.isDefaults).map(\.name)
    return names.sorted { first, second in
      guard let second else { return false }
      return first.map { $0.utf8.lexicographicallyPrecedes(second.utf8) } ?? true
    }
  }
}
