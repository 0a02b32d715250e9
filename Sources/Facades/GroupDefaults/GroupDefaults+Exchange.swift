public import FoundationEssentials
public import Wormhole
import WormholePropertyLists

extension GroupDefaults {
  /// The treatment of existing keys by an import.
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
  ///   - mode: The treatment of stored keys that are not imported.
  ///   - durability: What the import survives.
  ///   - deadline: The latest instant to wait for other changes of the same suite.
  /// - Returns: The number of imported keys.
  /// - Throws: `GroupDefaultsError.badImport` for anything else, for example an archive of
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
  /// - Throws: Also `AppGroupError` for a file that cannot be read, is not regular, or is larger
  ///   than `Value.maximumBytes`.
  @discardableResult
  public func importSuite(
    from file: URL, _ mode: ImportMode, durability: Durability = .standard,
    until deadline: ContinuousClock.Instant? = nil
  ) throws -> Int {
    let bytes = try ForeignFile.read(file.path, maximumBytes: Value.maximumBytes)
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
    throw GroupDefaultsError(
      .badImport, "import defaults", path: path, reason: reason,
      remedy: "provide an XML or binary property list with a dictionary at its top")
  }

  /// Returns the content of the suite as a property list that Apple's and other tools can read.
  ///
  /// - Throws: `GroupDefaultsError.damaged`, or `badExport` for content that XML has no way to
  ///   write, such as a string with a control character; `AppGroupError`.
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
