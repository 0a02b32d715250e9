public import AppGroup
public import FoundationEssentials
import PropertyLists

extension GroupDefaults {
  /// What an import does with what is stored already.
  public enum ImportMode: Sendable, Hashable {
    /// Keys that are not imported stay as they are.
    case merging
    /// They are removed.
    case replacing
  }

  /// The format of an export.
  public enum ExportFormat: Sendable, Hashable {
    /// XML, laid out as Apple's tools do; dates lose their fractions of a second.
    case xml
    /// Binary, version 00.
    case binary
  }

  /// Stores all that a property list has, in one step: a file of `~/Library/Preferences`, of
  /// `defaults export`, of `plutil`, or what `exportSuite` gave.
  ///
  /// - Parameters:
  ///   - data: an XML or binary property list, a dictionary at its top; whoever made it.
  ///   - mode: what becomes of the keys that are stored and not imported.
  ///   - durability: what the import survives.
  ///   - deadline: until when to wait for other changes of the same suite.
  /// - Returns: how many keys were imported.
  /// - Throws: `GroupDefaultsError.badImport` for anything else, an archive of Objective-C objects for
  ///   example, or a hostile file; else as `write`. Nothing has changed then.
  @discardableResult
  public func importSuite(
    from data: Data, _ mode: ImportMode, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) throws -> Int {
    try importSuite([UInt8](data), path: "", mode, Suite.Terms(durability, deadline))
  }

  /// Stores all that a property-list file has; see the form for data.
  ///
  /// - Throws: also `AppGroupError` for a file that cannot be read, is not regular, or is larger than
  ///   `Value.maximumBytes`.
  @discardableResult
  public func importSuite(
    from file: URL, _ mode: ImportMode, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) throws -> Int {
    let bytes = try ForeignFile.read(file.path, maximumBytes: Value.maximumBytes)
    return try importSuite(bytes, path: file.path, mode, Suite.Terms(durability, deadline))
  }

  private func importSuite(
    _ bytes: [UInt8], path: String, _ mode: ImportMode, _ terms: Suite.Terms
  ) throws -> Int {
    let contents = try Self.imported(bytes, path: path)
    try suite().edit(terms) { stored in
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
      reason = "it is a property list, but no dictionary"
    } catch {
      reason = "\(error)"
    }
    throw GroupDefaultsError(
      .badImport, "import defaults", path: path, reason: reason,
      remedy: "an XML or binary property list with a dictionary at its top is wanted")
  }

  /// All that is stored in the suite, as a property list that Apple's tools and anybody else read.
  ///
  /// - Throws: `GroupDefaultsError`: `damaged`, or `badExport` for what XML has no way to write, such
  ///   as a string with a control character; `AppGroupError`.
  public func exportSuite(as format: ExportFormat) throws -> Data {
    let suite = try suite()
    let contents = PropertyListValue.dictionary(try suite.contents())
    do throws(PropertyListError) {
      switch format {
      case .xml: return try contents.xmlData()
      case .binary: return try contents.binaryData()
      }
    } catch {
      throw GroupDefaultsError(
        .badExport, "export the defaults", path: suite.value.path, reason: "\(error)",
        remedy: format == .xml ? "export them as a binary property list" : nil)
    }
  }
}
