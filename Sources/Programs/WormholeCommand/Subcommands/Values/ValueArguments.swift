import FoundationEssentials
import WormholePropertyLists

// The forms of a value on the command line: JSON, or text or bytes that need no quoting.

extension ArgumentDescription {
  /// The form of the value that is read.
  static let form = value(
    "as", .choice(ValueForm.allCases.map(\.rawValue)), named: "form",
    help: "Read it as json, string, data or plist; by default it is JSON, or a word as a string.")

  static let nulls = value(
    "nulls", .choice(JSONReader.Nulls.allCases.map(\.rawValue)), named: "what",
    standard: JSONReader.Nulls.refuse.rawValue,
    help: "What becomes of null within JSON; with 'drop', its key or element is left out.")

  static let lines = flag(
    "lines", help: "Take each line of the input as a value, as it comes.")

  /// The forms of an argument, and of a file or standard input.
  static let valueSources: [ArgumentDescription] = [
    form, nulls, .value("file", .file, help: "Read the value from a file instead."),
  ]
}

/// The form of a value that is read.
enum ValueForm: String, CaseIterable {
  case json, string, data, plist
}

extension ParsedArguments {
  /// Nil for JSON, or a word.
  private var form: ValueForm? { text("as").flatMap(ValueForm.init) }

  static let valueProblem: @Sendable (ParsedArguments) -> String? = { arguments in
    if arguments.has("lines"), arguments.form == .plist {
      return "--lines and --as plist exclude each other"
    }
    if arguments.has("lines"), let text = arguments.text("value"), text != "-" {
      return "--lines reads standard input or --file, and no argument"
    }
    return arguments.text("file") != nil && arguments.text("value") != nil
      ? "give either a value or --file" : nil
  }

  /// Returns the value that the arguments give: as one of them, on standard input, or in a file.
  /// The object is that of an error's sentence.
  func value(_ environment: CommandEnvironment, _ object: String) throws -> PropertyListValue {
    if let file = text("file") { return try value(environment.content(of: file), file) }
    return try operandValue(environment, object)
  }

  /// Returns the value that is an argument, or is on standard input.
  func operandValue(
    _ environment: CommandEnvironment, _ object: String
  ) throws -> PropertyListValue {
    guard let text = text("value"), text != "-" else {
      return try value(environment.wholeStandardInput(), "\(object) on standard input")
    }
    return try value(ofWord: text, environment, object)
  }

  /// Calls a closure with the value that the arguments give; with `--lines`, with the value of each
  /// line as it arrives.
  ///
  /// - Throws: the closure's error; after the last line `.badData` if a line had no value. Such a
  ///   line is reported, and left out.
  func forEachValue(
    _ environment: CommandEnvironment, object: String, _ body: (PropertyListValue) throws -> Void
  ) throws {
    guard has("lines") else { return try body(value(environment, object)) }
    var status = ExitStatus.done
    var number = 0
    try environment.forEachLine(ofFile: text("file"), keepsReturn: form == .data) { line in
      number += 1
      let value: PropertyListValue?
      do {
        value = try self.value(ofLine: line, environment, "line \(number)")
      } catch let error as CommandError where error.status == .badData {
        environment.report(error)
        status = .badData
        return
      }
      if let value { try body(value) }
    }
    try status.end()
  }

  /// - Returns: nil for a line without a value: an empty one, unless it is text or data.
  private func value(
    ofLine line: ArraySlice<UInt8>, _ environment: CommandEnvironment, _ object: String
  ) throws -> PropertyListValue? {
    // Any bytes are data.
    guard form != .data, let text = String(validating: line, as: UTF8.self) else {
      return try value(Array(line), object)
    }
    guard form == .string || text.contains(where: { !$0.isWhitespace }) else { return nil }
    return try value(ofWord: text, environment, object)
  }

  /// Returns the value that a text stands for: JSON, or a word.
  func value(
    ofWord text: String, _ environment: CommandEnvironment, _ object: String
  ) throws -> PropertyListValue {
    guard form == nil else { return try value(Array(text.utf8), object) }
    guard text.isWord else {
      do {
        return try value(Array(text.utf8), object)
      } catch let error as CommandError
        where text != "null" && text.first.map({ !"{[\"".contains($0) }) != false
      {
        // A date, for example.
        throw CommandError(
          cannot: error.action, because: error.reason + "; --as string takes it as a text",
          status: error.status)
      }
    }
    do {
      return try JSONReader.read(Array(text.utf8))
    } catch {
      if environment.errorColumns != nil {
        environment.report("\(text.quoted) is not JSON, so it is taken as a string; see --as")
      }
      return .string(text)
    }
  }

  var nulls: JSONReader.Nulls { choice("nulls") }

  private func value(_ bytes: [UInt8], _ source: String) throws -> PropertyListValue {
    func refused(_ reason: String) -> CommandError {
      CommandError(cannot: "read \(source)", because: reason, status: .badData)
    }
    switch form {
    case .data: return .data(Data(bytes))
    case .string:
      guard let text = String(validating: bytes, as: UTF8.self) else {
        throw refused("it is not UTF-8; --as data takes any bytes")
      }
      return .string(text)
    case .plist:
      do throws(PropertyListError) {
        return try PropertyListValue(bytes: bytes)
      } catch {
        throw refused(error.description)
      }
    case .json, nil: return try JSONInput.read(bytes, source: source, nulls: nulls)
    }
  }
}

extension String {
  /// Whether it begins as no JSON does, like a word or a path, so it is not JSON with a mistake.
  /// Null is JSON, but has no place in a property list.
  fileprivate var isWord: Bool {
    guard self != "null", let first = first(where: { !$0.isWhitespace }) else { return false }
    // "-5", ".5" and "+5" are meant as numbers, and so may "2026-11-24" be. A byte order mark may
    // precede JSON, although it must not.
    let digit = drop { $0.isWhitespace || "+-.".contains($0) }.first
    let isNumber = digit.map { $0.isASCII && $0.isNumber } ?? false
    return !"{[\"\u{FEFF}".contains(first) && !isNumber
  }
}
