import PropertyLists
import SystemCalls

/// `presence/<name>/`: one file for each registration that lives, locked as long as it does.
///
/// ```
/// entering-<id>.plist   being written; its maker made it, locked it, and writes then
/// member-<id>.plist     a registration: complete before it got this name, and locked
/// last.plist            who was last; with `ended` if it left, without if it died
/// exclusive.plist       whose role it is to be the only one, changed under lease/ as a value is
/// ```
///
/// **Who is here.** A member is present if its file is locked and says so of this directory. Nobody
/// locks a file of another's, but for the shared lock that a look takes for a moment; so a look
/// that gets it has found a dead one, and renames it to `last.plist`.
///
/// **How an end is told.** The kernel closes what a dead process had open. The file was open for
/// writing, so that is IN_CLOSE_WRITE for those who watch the directory; looks open it for reading
/// only, and tell nobody. The event comes just before the lock is free: see `SecondLooks`. Who
/// leaves removes its file first, which is seen at once.
///
/// **What a crash leaves**: an unlocked `entering-` file, which the next who enters or a sweep of the
/// container removes, or a dead member, which the next look moves aside.
struct PresenceDirectory: Sendable {
  let directory: NamedDirectory

  static let memberPrefix = "member-"
  static let enteringPrefix = "entering-"
  static let suffix = ".plist"
  static let last = "last.plist"
  /// More entries than this are a planted directory, and looking at it would never end.
  static let maximumEntries = 10_000

  var root: ContainerRoot { directory.root }

  static func memberName(_ id: String) -> String { memberPrefix + id + suffix }
  static func enteringName(_ id: String) -> String { enteringPrefix + id + suffix }

  /// The id in a name of ours; nil for any other name.
  static func id(in name: FileName, after prefix: String) -> String? {
    guard name.bytes.count <= 64, name.hasPrefix(prefix),
      name.bytes.suffix(suffix.utf8.count).elementsEqual(suffix.utf8)
    else { return nil }
    let id = name.bytes.dropFirst(prefix.utf8.count).dropLast(suffix.utf8.count)
    let isOurs = id.allSatisfy {
      (48...57).contains($0) || (97...102).contains($0) || $0 == UInt8(ascii: "-")
    }
    return isOurs && !id.isEmpty ? String(decoding: id, as: UTF8.self) : nil
  }

  // MARK: Looking

  /// Who lives and who does not, each in the order of entering.
  struct Look {
    var live: [PresenceMember] = []
    var dead: [PresenceMember] = []
  }

  /// - Parameter movesAside: whether what is dead becomes who was last.
  /// - Returns: nil when there is no such directory.
  func look(movesAside: Bool = true) throws -> Look? {
    try directory.look([.readOnly, .directory]) { try look(at: $0, movesAside: movesAside) }
  }

  private func look(at place: borrowing FileDescriptor, movesAside: Bool) throws -> Look {
    let names = try names(in: place)
    var look = Look()
    guard !names.isEmpty else { return look }
    let examiner = try Examiner(place, root)
    for (name, id) in names {
      guard let member = try examiner.examine(name, id)?.member else { continue }
      if member.state == .gone { look.dead.append(member) } else { look.live.append(member) }
    }
    look.live.sort { $0.isBefore($1) }
    look.dead.sort { $0.isBefore($1) }
    if movesAside { moveAside(look.dead, in: place) }
    return look
  }

  private func names(in place: borrowing FileDescriptor) throws -> [(name: String, id: String)] {
    var names: [(String, String)] = []
    var count = 0
    var more = true
    while more {
      more = try place.nextEntries { entry in
        count += 1
        guard entry.isDirectory != true,
          let id = Self.id(in: entry.name, after: Self.memberPrefix)
        else { return }
        names.append((entry.name.text, id))
      }
      guard count <= Self.maximumEntries else {
        throw AppGroupError(
          .tooLarge, "look who is present", path: directory.path,
          reason: "there are more than \(Self.maximumEntries) files",
          remedy: "remove what is not the container's")
      }
    }
    return names
  }

  /// Whether the registration of that id lives, also one that has not quite entered.
  func living(_ id: String, at place: borrowing FileDescriptor) throws -> PresenceMember? {
    let examiner = try Examiner(place, root)
    // It may get its other name between two looks.
    for name in [Self.memberName(id), Self.enteringName(id), Self.memberName(id)] {
      guard let member = try examiner.examine(name, id)?.member else { continue }
      return member.state == .gone ? nil : member
    }
    return nil
  }

  /// Who was last, and when it left; nil when nobody was, or when its record cannot be read.
  func lastRecord() throws -> PresenceRecord? {
    try directory.look { try Examiner($0, root).read(Self.last, id: nil)?.record } ?? nil
  }

  /// Whether anybody was ever here.
  func hasLast() throws -> Bool {
    guard let place = try directory.open() else { return false }
    do throws(Errno) {
      _ = try fileStatus(Self.last, at: place.rawValue)
      return true
    } catch {
      guard error == .noSuchFile else { throw error }
      return false
    }
  }

  // MARK: Sweeping

  // Ids are never used again, so what is dead stays dead, whoever else moves it aside.
  private func moveAside(_ dead: [PresenceMember], in place: borrowing FileDescriptor) {
    for member in dead {
      do throws(Errno) {
        try rename(
          Self.memberName(member.id), at: place.rawValue, to: Self.last, at: place.rawValue)
      } catch {
        // Another was faster; or the file system is read-only, and nobody minds it there.
        continue
      }
    }
  }

  /// Moves a registration aside that has lost its role to another.
  func retire(_ member: PresenceMember) throws {
    guard let place = try directory.open() else { return }
    moveAside([member], in: place)
  }

  /// Moves the dead aside, and removes what is left of those who died while they entered.
  func sweep() throws {
    guard try look() != nil else { return }
    _ = try directory.look([.readOnly, .directory]) { try sweep(at: $0) }
  }

  private func sweep(at place: borrowing FileDescriptor) throws {
    let examiner = try Examiner(place, root)
    for entry in try place.entries() where entry.isDirectory != true {
      do throws(Errno) {
        _ = try examiner.isAbandoned(entry.name, removing: true)
      } catch {
        guard Self.isPassedOver(error) else { throw error }
      }
    }
  }

  // Gone; or a link, a socket or another user's: none of ours.
  static func isPassedOver(_ error: Errno) -> Bool {
    [.noSuchFile, .tooManyLinks, .noSuchDevice, .accessDenied].contains(error)
  }
}

extension PresenceMember {
  fileprivate func isBefore(_ other: PresenceMember) -> Bool {
    (enteredAt, id) < (other.enteredAt, other.id)
  }
}
