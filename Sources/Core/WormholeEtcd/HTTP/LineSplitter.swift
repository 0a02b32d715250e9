/// Cuts a stream of bytes into lines. Each byte is examined once, however long a line is.
struct LineSplitter {
  let maximumBytes: Int
  var line: [UInt8] = []

  /// - Parameter body: Gets each completed line, without its end; empty lines are left out.
  /// - Returns: Whether the incomplete line may continue.
  mutating func take(_ bytes: UnsafeRawBufferPointer, _ body: ([UInt8]) -> Void) -> Bool {
    var start = 0
    // A plain loop: the general search of a collection takes ten times as long without optimization.
    for index in 0..<bytes.count where bytes[index] == UInt8(ascii: "\n") {
      guard line.count + index - start <= maximumBytes else { return false }
      line += UnsafeRawBufferPointer(rebasing: bytes[start..<index])
      start = index + 1
      let complete = line
      line = []
      if !complete.isEmpty { body(complete) }
    }
    line += UnsafeRawBufferPointer(rebasing: bytes[start...])
    return line.count <= maximumBytes
  }
}
