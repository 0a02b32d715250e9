import Glibc
import WormholeShims

/// The changes of a watched directory or file that are reported. The C names are in `inotify(7)`.
package struct WatchEvents: OptionSet, Sendable, Hashable {
  package let rawValue: UInt32

  package init(rawValue: UInt32) {
    self.rawValue = rawValue
  }

  // As for `OpenOptions`: the general form takes half a microsecond.
  package init(arrayLiteral events: WatchEvents...) {
    rawValue = events.reduce(0) { $0 | $1.rawValue }
  }

  package static let attributes = WatchEvents(rawValue: UInt32(IN_ATTRIB))
  package static let closedAfterWriting = WatchEvents(rawValue: UInt32(IN_CLOSE_WRITE))
  package static let closedWithoutWriting = WatchEvents(rawValue: UInt32(IN_CLOSE_NOWRITE))
  package static let created = WatchEvents(rawValue: UInt32(IN_CREATE))
  package static let deleted = WatchEvents(rawValue: UInt32(IN_DELETE))
  package static let movedFrom = WatchEvents(rawValue: UInt32(IN_MOVED_FROM))
  package static let modified = WatchEvents(rawValue: UInt32(IN_MODIFY))
  package static let movedTo = WatchEvents(rawValue: UInt32(IN_MOVED_TO))
  package static let selfDeleted = WatchEvents(rawValue: UInt32(IN_DELETE_SELF))
  package static let selfMoved = WatchEvents(rawValue: UInt32(IN_MOVE_SELF))
  package static let onlyDirectory = WatchEvents(rawValue: UInt32(IN_ONLYDIR))
  package static let doNotFollow = WatchEvents(rawValue: UInt32(IN_DONT_FOLLOW))
  /// Not an event: adds the mask to the mask of a watch that the inode already has.
  package static let addToExisting = WatchEvents(rawValue: UInt32(IN_MASK_ADD))
  /// Reported without being asked for: the watch is gone.
  package static let ignored = WatchEvents(rawValue: UInt32(IN_IGNORED))
  /// Reported without being asked for: events were lost.
  package static let overflowed = WatchEvents(rawValue: UInt32(IN_Q_OVERFLOW))
  /// Reported without being asked for: the file system was unmounted.
  package static let unmounted = WatchEvents(rawValue: UInt32(IN_UNMOUNT))
}

extension FileDescriptor {
  /// Creates an event queue for watches. The corresponding C function is `inotify_init1`.
  ///
  /// - Throws: `.tooManyOpenFiles` if the user's instances or the process's descriptors run out.
  package static func eventQueue() throws(Errno) -> FileDescriptor {
    FileDescriptor(
      owning: try perform(.inotifyInit) { inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK)) })
  }

  /// Watches a file or directory. The corresponding C function is `inotify_add_watch`.
  ///
  /// - Returns: The number that events carry; for a file already watched, the same number again.
  /// - Throws: `.noSpace` if the user's watches are used up.
  package func addWatch(_ path: String, _ events: WatchEvents) throws(Errno) -> Int32 {
    try perform(.inotifyAddWatch) { inotify_add_watch(rawValue, path, events.rawValue) }
  }

  /// Ends a watch. The corresponding C function is `inotify_rm_watch`.
  package func removeWatch(_ number: Int32) throws(Errno) {
    _ = try perform(.inotifyRemoveWatch) { inotify_rm_watch(rawValue, number) }
  }

  /// Takes waiting events from an event queue; never blocks.
  ///
  /// - Returns: Whether more events may be waiting. The kernel fills the buffer as long as the next
  ///   event fits, so if there is room left for the longest event, none was left.
  package func takeEvents(_ body: (Int32, WatchEvents) -> Void) throws(Errno) -> Bool {
    try takeNamedEvents { number, events, _ in body(number, events) }
  }

  /// Takes waiting events together with their names: an entry of the watched directory, or empty
  /// for the watched file itself. The bytes of a name end at the first NUL and are valid only
  /// during the call.
  ///
  /// - Parameter capacity: The size of the buffer; up to 1,024 bytes it costs nothing.
  package func takeNamedEvents(
    capacity: Int = 16_384, _ body: (Int32, WatchEvents, UnsafeRawBufferPointer) -> Void
  ) throws(Errno) -> Bool {
    do throws(Errno) {
      return try withTemporaryBytes(capacity) { buffer throws(Errno) in
        let count = try read(into: buffer)
        var offset = 0
        // struct inotify_event { int wd; u32 mask, cookie, len; char name[]; } (inotify(7))
        while offset + 16 <= count {
          let number = buffer.load(fromByteOffset: offset, as: Int32.self)
          let mask = buffer.load(fromByteOffset: offset + 4, as: UInt32.self)
          let length = buffer.load(fromByteOffset: offset + 12, as: UInt32.self)
          let next = offset + 16 + Int(length)
          guard next <= count else { break }
          let name = UnsafeRawBufferPointer(rebasing: buffer[(offset + 16)..<next])
          body(number, WatchEvents(rawValue: mask), name)
          offset = next
        }
        return count > capacity - (16 + 256)
      }
    } catch {
      guard error == .wouldBlock else { throw error }
      return false
    }
  }

  /// Creates a counter that one thread raises to wake another. The C function is `eventfd`.
  package static func wakeUpCounter() throws(Errno) -> FileDescriptor {
    FileDescriptor(owning: try perform(.eventfd) { csys_eventfd() })
  }

  package func raiseCounter() throws(Errno) {
    var one: UInt64 = 1
    _ = try perform(.eventfd) { Glibc.write(rawValue, &one, 8) }
  }

  /// Resets a wake-up counter to zero; a counter at zero does not change.
  package func lowerCounter() throws(Errno) {
    var value: UInt64 = 0
    do throws(Errno) {
      _ = try perform(.eventfd) { Glibc.read(rawValue, &value, 8) }
    } catch {
      guard error == .wouldBlock else { throw error }
    }
  }
}

/// Waits until one of the descriptors is readable or its other end is gone. The corresponding C
/// function is `poll`.
///
/// - Parameters:
///   - descriptors: The descriptors to wait for.
///   - deadline: The instant to give up at; nil waits forever, which only the monitor's own thread
///     may do.
/// - Returns: The ready descriptors; none if the deadline passed.
package func waitReadable(
  _ descriptors: [Int32], until deadline: ContinuousClock.Instant?
) throws(Errno) -> [Bool] {
  try waitReady(POLLIN, descriptors, until: deadline)
}

/// Waits until a pipe has room for `PIPE_BUF` bytes or its other end is gone; returns whether that
/// was before the deadline.
package func waitWritable(
  _ descriptor: Int32, until deadline: ContinuousClock.Instant
) throws(Errno) -> Bool {
  try waitReady(POLLOUT, [descriptor], until: deadline)[0]
}

private func waitReady(
  _ event: Int32, _ descriptors: [Int32], until deadline: ContinuousClock.Instant?
) throws(Errno) -> [Bool] {
  var requests = descriptors.map { pollfd(fd: $0, events: Int16(event), revents: 0) }
  var ready: Int32 = 0
  repeat {
    ready = try perform(.poll) {
      let timeout = deadline.map { ContinuousClock.now.duration(to: $0).pollMilliseconds } ?? -1
      return Glibc.poll(&requests, nfds_t(requests.count), timeout)
    }
    // One call waits for at most 24 days, which may end before the deadline.
  } while ready == 0 && deadline.map { ContinuousClock.now < $0 } ?? true
  return requests.map { $0.revents != 0 }
}
