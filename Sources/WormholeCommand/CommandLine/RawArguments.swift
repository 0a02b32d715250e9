/// The arguments as the kernel passed them: bytes.
///
/// `CommandLine.arguments` repairs invalid UTF-8 silently, and two different identifiers could
/// become one.
enum RawArguments {
  /// - Throws: which argument is not UTF-8, counted from 1.
  static func decode(_ arguments: [[UInt8]]) throws(InvalidText) -> [String] {
    var decoded: [String] = []
    for (index, bytes) in arguments.enumerated() {
      guard let text = String(validating: bytes, as: UTF8.self) else {
        throw InvalidText(position: index + 1)
      }
      decoded.append(text)
    }
    return decoded
  }

  struct InvalidText: Error, Equatable {
    let position: Int

    var reason: String { "argument \(position) is not valid UTF-8" }
  }
}
