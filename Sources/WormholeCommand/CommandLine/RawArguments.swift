/// The arguments as the kernel passed them.
///
/// `CommandLine.arguments` repairs invalid UTF-8 silently: two different identifiers could become
/// one, so the bytes are read and checked here.
enum RawArguments {
  /// The bytes of each argument of this process, the program's name left out.
  static func ofProcess() -> [[UInt8]] {
    (1..<max(1, Int(CommandLine.argc))).compactMap { index in
      guard let start = CommandLine.unsafeArgv[index] else { return nil }
      var bytes: [UInt8] = []
      var position = 0
      while start[position] != 0 {
        bytes.append(UInt8(bitPattern: start[position]))
        position += 1
      }
      return bytes
    }
  }

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
