/// The way to a path: each directory and symbolic link that the kernel passes, in its order.
///
/// A path names another file as soon as one entry of its way is replaced, removed or moved. Each of
/// these is an event of the entry itself, so a watch on it costs nothing while others change
/// something beside it.
package struct PathWay {
  package struct Entry {
    package let file: SharedDescriptor
    package let status: FileStatus

    package var isLink: Bool { status.kind == .symbolicLink }
    /// The events of its own end. A link reports at once that it has lost its name.
    package var events: WatchEvents {
      isLink ? [.attributes, .selfDeleted, .selfMoved] : [.selfDeleted, .selfMoved]
    }
  }

  package private(set) var entries: [Entry] = []
  /// Whether the path leads to a file.
  package private(set) var isWhole = false

  private static let mostLinks = 40
  private static let slash = UInt8(ascii: "/")

  /// Walks the way to an absolute path, up to an entry that is missing or cannot be examined.
  ///
  /// - Complexity: two system calls for each entry, and one more for a link.
  package init(to path: String) {
    do throws(Errno) {
      try walk(FileName(path))
      isWhole = true
    } catch {
      // What follows is unknown, or missing.
    }
  }

  private mutating func walk(_ path: FileName) throws(Errno) {
    var place = try Self.root()
    var rest = Self.names(in: path)[...]
    var links = 0
    while let name = rest.popFirst() {
      let file = SharedDescriptor(
        try FileDescriptor.open(name, at: place.descriptor.rawValue, [.pathOnly, .noFollow]))
      let entry = Entry(file: file, status: try file.descriptor.status())
      if name != FileName(".."), name != FileName(".") { entries.append(entry) }
      guard entry.isLink else {
        place = file
        continue
      }
      links += 1
      guard links <= Self.mostLinks else { throw .tooManyLinks }
      let target = try linkTarget(FileName(""), at: file.descriptor.rawValue)
      if target.bytes.first == Self.slash { place = try Self.root() }
      rest = (Self.names(in: target) + rest)[...]
    }
  }

  private static func root() throws(Errno) -> SharedDescriptor {
    SharedDescriptor(try FileDescriptor.open("/", [.pathOnly, .directory]))
  }

  private static func names(in path: FileName) -> [FileName] {
    path.bytes.split(separator: slash).map { FileName(bytes: Array($0)) }
  }

  /// Whether another walk has passed the same entries.
  func isSame(as other: PathWay) -> Bool {
    isWhole == other.isWhole
      && entries.elementsEqual(other.entries) { $0.status.isSameFile(as: $1.status) }
  }

  /// The last time at which one of its links was made or renamed; nil without links.
  package var linked: WallTime? {
    entries.filter(\.isLink).map(\.status.changedMoment).max()
  }
}
