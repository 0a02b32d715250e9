import PropertyLists

/// JSON that came from somewhere: as a value, or as an error that names the place in it.
enum Message {
  /// JSON is at most a few times larger than the largest property list that is read.
  static let maximumTextBytes = 256 << 20

  /// - Parameter source: what the text is, as the object of a sentence: "the message".
  static func read(_ bytes: [UInt8], source: String) throws -> PropertyListValue {
    try reporting(source) { () throws(JSONError) in try JSONReader.read(bytes) }
  }

  /// The same; a lone `null` means that there is no message.
  static func readOptional(_ bytes: [UInt8], source: String) throws -> PropertyListValue? {
    try reporting(source) { () throws(JSONError) in try JSONReader.readOptional(bytes) }
  }

  private static func reporting<Result>(
    _ source: String, _ body: () throws(JSONError) -> Result
  ) throws -> Result {
    do throws(JSONError) {
      return try body()
    } catch {
      throw CommandError(verb: "read", object: source, reason: "\(error)", status: .badData)
    }
  }
}

extension CommandEnvironment {
  /// What an argument says as JSON; without it, or for '-', what standard input does.
  ///
  /// - Parameter object: what it is, as the object of a sentence: "the message".
  func value(_ text: String?, _ object: String) throws -> PropertyListValue {
    if let text, text != "-" { return try Message.read(Array(text.utf8), source: object) }
    return try Message.read(wholeStandardInput(), source: "\(object) on standard input")
  }
}

extension OutputFormat {
  /// A value as it is printed: JSON and XML end with a line break, a binary property list does not.
  func bytes(_ value: PropertyListValue, of object: String) throws -> [UInt8] {
    do {
      switch self {
      case .json: return try JSONWriter.bytes(value) + [UInt8(ascii: "\n")]
      case .plist: return try Array(value.xmlData())
      case .binary: return try value.binaryBytes()
      }
    } catch {
      throw CommandError(verb: "print", object: object, reason: "\(error)", status: .badData)
    }
  }
}

extension String {
  /// An identifier within a sentence.
  var quoted: String { "\"\(self)\"" }
}
