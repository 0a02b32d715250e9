import FoundationEssentials
import WormholeSystem

/// Writes a directory as a zip file, for an accessor that uploads it: without compression, in
/// pieces, with a few hundred bytes of memory for each entry.
///
/// Directories, files and symbolic links are in it, with their names, modes and times as Info-ZIP
/// writes them. Sites, and entries of other kinds, which have no content, are left out. UTF-8 names
/// are marked as such. Sizes and offsets of more than 32 bits are in ZIP64 fields.
///
/// The format is in APPNOTE.TXT of PKWARE, version 6.3.10 (sections 4.3 to 4.5), and the extra field
/// of times in Info-ZIP's proginfo/extrafld.txt.
struct ZipFile {
  private struct Entry {
    let name: [UInt8]
    let status: FileStatus
    let offset: Int64
    /// Whether its sizes have 64 bits, which its first header has to know.
    let isLarge: Bool
    var checksum: UInt32 = 0
    var size: Int64 = 0
  }

  private let file: SharedDescriptor
  private let check: () throws -> Void
  private let calendar = Calendar(identifier: .gregorian)
  /// The directory at the end of the file.
  private var directory: [UInt8] = []
  private var count = 0
  private var end: Int64 = 0

  private static let most: UInt32 = .max
  /// The maximum number of a file's bytes in memory at once.
  private static let pieceBytes: Int64 = 1 << 20
  private static let unix: UInt16 = 3 << 8
  /// The version of the format that has ZIP64.
  private static let version: UInt16 = 45
  /// An entry is gone, or is now of another kind.
  private static let vanished: [Errno] = [.noSuchFile, .staleHandle, .notDirectory, .tooManyLinks]

  /// Writes a directory and everything below it.
  ///
  /// - Parameters:
  ///   - path: The zip file, which is made.
  ///   - check: Called between entries and between pieces of a file; its errors end the writing.
  /// - Throws: `WormholeError` with the entry that could not be read. An entry that vanishes
  ///   meanwhile is left out.
  /// - Complexity: Eight system calls for a file, and two for each mebibyte of it.
  static func write(
    _ name: FileName, at parent: Int32, to path: String, check: @escaping () throws -> Void
  ) throws {
    let file = try FileDescriptor.open(
      path, [.writeOnly, .create, .exclusive, .noFollow], mode: 0o600)
    var zip = ZipFile(file: SharedDescriptor(file), check: check)
    let root = SharedDescriptor(try openDirectory(name, at: parent))
    try zip.addDirectory(TreePath(name), root)
    try zip.walk("zip", through: root, path: TreePath(name))
    try zip.finish()
  }

  // MARK: Entries

  private mutating func addDirectory(_ path: TreePath, _ open: SharedDescriptor) throws {
    let slash = UInt8(ascii: "/")
    try add(path.bytes + [slash], try open.descriptor.status()) { _, _ in }
  }

  private mutating func addFile(_ name: FileName, at place: TreePosition) throws {
    let opened = try tolerating(
      Self.vanished,
      SharedDescriptor(
        FileDescriptor.open(name, at: place.rawValue, [.readOnly, .noFollow, .nonBlocking])))
    guard let source = opened else { return }
    let status = try source.descriptor.status()
    guard status.kind == .regular else { return }
    try add(place.path.appending(name).bytes, status) { zip, entry in
      // A file that grows meanwhile has the size in its first header.
      while entry.size < status.size {
        try zip.check()
        var piece: [UInt8] = []
        let room = Int(min(status.size - entry.size, Self.pieceBytes))
        if try source.descriptor.read(atMost: room, appendingTo: &piece) == 0 { return }
        try zip.append(piece, to: &entry)
      }
    }
  }

  private mutating func addLink(
    _ name: FileName, _ status: FileStatus, at place: TreePosition
  ) throws {
    let target = try tolerating(Self.vanished, linkTarget(name, at: place.rawValue))
    guard let target else { return }
    try add(place.path.appending(name).bytes, status) { zip, entry in
      try zip.append(target.bytes, to: &entry)
    }
  }

  /// Writes an entry: its header is written again once its content is known.
  private mutating func add(
    _ name: [UInt8], _ status: FileStatus, _ content: (inout ZipFile, inout Entry) throws -> Void
  ) throws {
    guard name.count <= Int(UInt16.max) else { throw Errno.fileNameTooLong }
    var entry = Entry(
      name: name, status: status, offset: end, isLarge: status.size >= Int64(Self.most))
    try write(localHeader(entry))
    try content(&self, &entry)
    if entry.size > 0 {
      try file.descriptor.seek(to: entry.offset)
      try file.descriptor.writeAll(localHeader(entry))
      try file.descriptor.seek(to: end)
    }
    directory += centralHeader(entry)
    count += 1
  }

  private mutating func append(_ bytes: [UInt8], to entry: inout Entry) throws {
    entry.checksum = Checksum.adding(bytes, to: entry.checksum)
    entry.size += Int64(bytes.count)
    try write(bytes)
  }

  private mutating func write(_ bytes: [UInt8]) throws {
    try file.descriptor.writeAll(bytes)
    end += Int64(bytes.count)
  }
}

extension ZipFile: TreeVisitor {
  mutating func visit(_ entry: FileDescriptor.Entry, at place: TreePosition) throws -> Void? {
    guard !ItemSite.isSite(entry.name) else { return nil }
    try check()
    return try reporting("zip", path: place.path.appending(entry.name).text) {
      let status = try tolerating(Self.vanished, fileStatus(entry.name, at: place.rawValue))
      switch status?.kind {
      case .directory: return ()
      case .regular: try addFile(entry.name, at: place)
      case .symbolicLink: try status.map { try addLink(entry.name, $0, at: place) }
      default: break
      }
      return nil
    }
  }

  mutating func enter(
    _ name: FileName, _ mark: Void, at place: TreePosition
  ) throws -> SharedDescriptor? {
    let path = place.path.appending(name)
    return try reporting("zip", path: path.text) {
      let open = try tolerating(
        Self.vanished, SharedDescriptor(openDirectory(name, at: place.rawValue)))
      try open.map { try addDirectory(path, $0) }
      return open
    }
  }
}

// MARK: Headers

extension ZipFile {
  private func localHeader(_ entry: Entry) -> [UInt8] {
    let large = entry.isLarge ? extra(0x0001, [entry.size, entry.size].flatMap(bytes)) : []
    return bytes(0x0403_4B50 as UInt32) + common(entry, extra: large + time(entry))
      + entry.name + large + time(entry)
  }

  private func centralHeader(_ entry: Entry) -> [UInt8] {
    let isFar = entry.offset >= Int64(Self.most)
    let wide = (entry.isLarge ? [entry.size, entry.size] : []) + (isFar ? [entry.offset] : [])
    let large = wide.isEmpty ? [] : extra(0x0001, wide.flatMap(bytes))
    let kind: UInt32 =
      switch entry.status.kind {
      case .directory: 0o040000
      case .symbolicLink: 0o120000
      default: 0o100000
      }
    // The lower half has the DOS attributes.
    let attributes =
      (kind | entry.status.permissions) << 16 | (entry.status.kind == .directory ? 0x10 : 0)
    return bytes(0x0201_4B50 as UInt32) + bytes(Self.unix | Self.version)
      + common(entry, extra: large + time(entry))
      // No comment, on the first disk, of binary content.
      + bytes(0 as UInt16) + bytes(0 as UInt16) + bytes(0 as UInt16) + bytes(attributes)
      + bytes(isFar ? Self.most : UInt32(entry.offset)) + entry.name + large + time(entry)
  }

  private func common(_ entry: Entry, extra: [UInt8]) -> [UInt8] {
    let isText = String(validating: entry.name, as: UTF8.self) != nil
    let size = entry.isLarge ? Self.most : UInt32(entry.size)
    let (day, second) = dosTime(entry.status.modifiedSeconds)
    let fields: [UInt16] = [Self.version, isText ? 1 << 11 : 0, 0, second, day]
    return fields.flatMap(bytes) + bytes(entry.checksum) + bytes(size) + bytes(size)
      + bytes(UInt16(entry.name.count)) + bytes(UInt16(extra.count))
  }

  /// The time of its last change, in seconds since 1970, because the DOS time has steps of two
  /// seconds and no zone.
  private func time(_ entry: Entry) -> [UInt8] {
    guard let seconds = Int32(exactly: entry.status.modifiedSeconds) else { return [] }
    return extra(0x5455, [1] + bytes(seconds))
  }

  private func dosTime(_ seconds: Int64) -> (day: UInt16, second: UInt16) {
    // From 1980 to 2107.
    let seconds = min(max(seconds, 315_532_800), 4_354_819_199)
    let parts = calendar.dateComponents(
      [.year, .month, .day, .hour, .minute, .second],
      from: Date(timeIntervalSince1970: Double(seconds)))
    let years = min(max((parts.year ?? 0) - 1980, 0), 127)
    let day = years << 9 | (parts.month ?? 1) << 5 | (parts.day ?? 1)
    let second = (parts.hour ?? 0) << 11 | (parts.minute ?? 0) << 5 | (parts.second ?? 0) / 2
    return (UInt16(day), UInt16(second))
  }

  private func extra(_ kind: UInt16, _ content: [UInt8]) -> [UInt8] {
    bytes(kind) + bytes(UInt16(content.count)) + content
  }

  private mutating func finish() throws {
    let (start, size) = (end, Int64(directory.count))
    try write(directory)
    let isLarge = count >= Int(UInt16.max) || max(start, size) >= Int64(Self.most)
    if isLarge {
      let last = end
      // The size of the rest of this record.
      try write(
        bytes(0x0606_4B50 as UInt32) + bytes(44 as Int64) + bytes(Self.unix | Self.version)
          + bytes(Self.version) + bytes(0 as Int64)
          + [Int64(count), Int64(count), size, start].flatMap(bytes))
      try write(
        bytes(0x0706_4B50 as UInt32) + bytes(0 as UInt32) + bytes(last) + bytes(1 as UInt32))
    }
    let entries = isLarge ? UInt16.max : UInt16(count)
    try write(
      bytes(0x0605_4B50 as UInt32) + bytes(0 as UInt32) + bytes(entries) + bytes(entries)
        + bytes(isLarge ? Self.most : UInt32(size)) + bytes(isLarge ? Self.most : UInt32(start))
        + bytes(0 as UInt16))
  }

  private func bytes(_ number: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: number.littleEndian) { Array($0) }
  }
}

/// CRC-32, the checksum of zip files: the polynomial of ISO 3309, its bits in reverse.
private enum Checksum {
  private static let table: [UInt32] = (0..<256).map { byte in
    (0..<8).reduce(UInt32(byte)) { rest, _ in
      rest & 1 == 0 ? rest >> 1 : rest >> 1 ^ 0xEDB8_8320
    }
  }

  static func adding(_ bytes: [UInt8], to checksum: UInt32) -> UInt32 {
    let table = table
    return ~bytes.withUnsafeBytes { bytes in
      bytes.reduce(~checksum) { table[Int(UInt8(truncatingIfNeeded: $0) ^ $1)] ^ $0 >> 8 }
    }
  }
}
