@testable import WormholeCinemaTime

extension PNG {
  /// Returns the modules of a symbol in a file that `bytes(of:scale:)` made, or nil for any other
  /// file.
  static func symbolRows(in file: [UInt8]) -> [[Bool]]? {
    guard let picture = Picture(file), let first = picture.rows.firstIndex(where: \.hasDark),
      let left = picture.rows[first].firstIndex(of: true)
    else { return nil }
    // The upper edge of a finder has seven modules.
    let edge = picture.rows[first][left...].prefix { $0 }.count
    guard edge % 7 == 0 else { return nil }
    let scale = edge / 7
    let size = (picture.rows.count - 2 * first) / scale
    guard first == left, size >= 21, first + size * scale <= picture.rows.count else { return nil }
    return (0..<size).map { row in
      (0..<size).map { picture.rows[first + row * scale][left + $0 * scale] }
    }
  }
}

/// A square picture with one bit per pixel, stored without compression.
private struct Picture {
  let rows: [[Bool]]

  init?(_ file: [UInt8]) {
    var reader = Reader(file[...])
    guard reader.take(8) == PNG.signature[...], let header = reader.chunk("IHDR"),
      header.count == 13, header.dropFirst(8) == [1, 0, 0, 0, 0],
      let stream = reader.chunk("IDAT"), let lines = Self.stored(stream),
      reader.chunk("IEND") != nil
    else { return nil }
    let sides = [header.prefix(4), header.dropFirst(4).prefix(4)].map {
      $0.reduce(0) { $0 << 8 | Int($1) }
    }
    let width = sides[0]
    let lineBytes = (width + 7) / 8 + 1
    guard width == sides[1], (1...4_096).contains(width), lines.count == width * lineBytes else {
      return nil
    }
    rows = (0..<width).map { row in
      (0..<width).map { lines[row * lineBytes + 1 + $0 / 8] >> (7 - $0 % 8) & 1 == 0 }
    }
  }

  /// Returns the content of the stored blocks of a zlib stream.
  private static func stored(_ stream: ArraySlice<UInt8>) -> [UInt8]? {
    var reader = Reader(stream.dropFirst(2))
    var content: [UInt8] = []
    while true {
      guard let head = reader.take(5).map(Array.init), head[0] <= 1,
        let block = reader.take(Int(head[1]) | Int(head[2]) << 8)
      else { return nil }
      content += block
      if head[0] == 1 { return content }
    }
  }

  private struct Reader {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
      guard count <= rest.count else { return nil }
      defer { rest = rest.dropFirst(count) }
      return rest.prefix(count)
    }

    mutating func chunk(_ type: String) -> ArraySlice<UInt8>? {
      guard let length = take(4)?.reduce(0, { $0 << 8 | Int($1) }), let body = take(4 + length),
        body.prefix(4).elementsEqual(type.utf8), let sum = take(4),
        sum.elementsEqual(PNG.big(Int(PNG.crc(Array(body)))))
      else { return nil }
      return body.dropFirst(4)
    }
  }
}

extension [Bool] {
  fileprivate var hasDark: Bool { contains(true) }
}
