import SystemCalls

/// Nobody reads standard output any more, as after `head` has ended: nothing to tell anybody.
struct OutputIsClosed: Error {}

extension CommandEnvironment {
  /// Writes to standard output.
  ///
  /// - Throws: `OutputIsClosed`, or a `CommandError` for a full disk and its like.
  func print(_ bytes: [UInt8]) throws {
    do {
      try writeStandardOutput(bytes)
    } catch let error as Errno where error == .brokenPipe {
      throw OutputIsClosed()
    } catch {
      throw CommandError(
        verb: "write to", object: "standard output", reason: "\(error)", status: .inputOutput)
    }
  }

  func print(line: String) throws { try print(Array((line + "\n").utf8)) }

  /// Says something to people; the program's name comes first.
  func tell(_ sentence: String) {
    writeStandardError(Array("wormhole: \(sentence.withoutControlCharacters)\n".utf8))
  }

  /// The word by which listening commands say that they cannot miss anything any more.
  ///
  /// - Parameter endsWithReader: whether the program ends, from now on, when nobody reads what it
  ///   prints; false for one that prints nothing, or that has something to give back before it ends.
  func tellListening(endsWithReader: Bool = true) {
    answers?.beginListening()
    writeStandardError(Array("listening\n".utf8))
    if endsWithReader { endWithReader() }
  }
}

extension String {
  /// Foreign text may not steer the terminal: control characters but line breaks are escaped.
  var withoutControlCharacters: String {
    let harmless = unicodeScalars.map { scalar in
      scalar.properties.generalCategory == .control && scalar != "\n"
        ? scalar.escaped(asASCII: true) : String(scalar)
    }
    return harmless.joined()
  }
}
