import SystemCalls

/// How a notification is rung: its directory holds one empty file whose name is new after every
/// post, `bell-<nonce>`.
///
/// Ringing is one rename of that file to a name that was never used: atomic, possible on a full
/// disk, an inotify event, and visible afterwards, so that a check or an observer whose events were
/// lost sees that there has been a post. Two posters at once: the one whose rename finds the old
/// name gone knows that another post happened during its own, and that one rings for both. A crash
/// leaves the old name or the new one.
struct Bell: Sendable {
  let directory: NamedDirectory
  private static let prefix = "bell-"

  /// The names of the bell at one moment: equal as long as nobody has rung.
  struct Sound: Hashable, Sendable {
    fileprivate let names: Set<FileName>

    /// Of a bell that nobody has ever rung.
    static let silence = Sound(names: [])
  }

  init(root: ContainerRoot, name: String) {
    directory = NamedDirectory(root: root, kind: .notification, identifier: name)
  }

  func ring() throws {
    for _ in 0..<interruptionLimit {
      let place = try directory.openOrMake()
      do throws(Errno) {
        if try ring(at: place) { return }
      } catch {
        // A sweep has removed the directory meanwhile.
        guard error == .noSuchFile else { throw error }
      }
    }
    throw Errno.noSuchFile
  }

  /// - Returns: false when a sweep has removed the bell meanwhile, and nobody has rung.
  private func ring(at place: borrowing FileDescriptor) throws(Errno) -> Bool {
    let bells = try names(in: place)
    let new = Self.prefix + Nonce.next()
    guard let first = bells.first else {
      _ = try directory.root.createFile(new, at: place.rawValue)
      return true
    }
    do throws(Errno) {
      try rename(first.text, at: place.rawValue, to: new, at: place.rawValue)
    } catch {
      guard error == .noSuchFile else { throw error }
      // Another post has rung meanwhile, or removed this one as surplus after ringing. What is left
      // is not ours to remove: only who has rung leaves one there for certain.
      return try !names(in: place).isEmpty
    }
    // Two first posts at once have made two; one is enough.
    for surplus in bells.dropFirst() {
      do throws(Errno) { try removeFile(surplus, at: place.rawValue) } catch {
        guard error == .noSuchFile else { throw error }
      }
    }
    return true
  }

  /// Removes the bell, so that it is as if nobody had ever rung.
  ///
  /// - Parameter sound: as it was when it was decided; a name is never used again, so a post since
  ///   then stays.
  /// - Returns: false when somebody has rung since.
  func remove(_ sound: Sound) throws -> Bool {
    guard let place = try directory.open() else { return true }
    for name in sound.names {
      do throws(Errno) { try removeFile(name, at: place.rawValue) } catch {
        guard error == .noSuchFile else { throw error }
        return false
      }
    }
    return true
  }

  static func isName(_ name: FileName) -> Bool { name.hasPrefix(prefix) }

  func sound() throws -> Sound {
    try directory.look { Sound(names: Set(try names(in: $0))) } ?? .silence
  }

  private func names(in place: borrowing FileDescriptor) throws(Errno) -> [FileName] {
    let readable = try FileDescriptor.open(".", at: place.rawValue, [.readOnly, .directory])
    return try readable.entries().map(\.name).filter { $0.hasPrefix(Self.prefix) }
  }

  func watch(_ signal: @escaping @Sendable () -> Void) throws -> Watch {
    try directory.watch(signal)
  }
}
