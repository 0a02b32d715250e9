import SystemCalls

/// `lease/kept-<boot>`: a version of a value that is known to be on the disk, for the case that the
/// power fails before the last one is.
///
/// To wait for the disk in each publication would make a hot value as slow as its disk. So one that
/// waits for nothing is allowed, but only while there is a kept version that was published less than
/// a second before it. What the disk has seen is a beginning of what was done here, therefore:
///
/// | what the disk has seen | `value.plist` holds | a reader gets |
/// |---|---|---|
/// | a publication that waited | its content | that |
/// | one that did not wait, and its content | its content | that |
/// | one that did not wait, without its content | nothing, or zeros | the kept version, a second older at most |
/// | a removal | – | no value: nobody looks for a kept version where there is no file |
///
/// The kept version is a second name of a file that was published, given under the lease and through
/// its descriptor (rule 2), so it is never something that a late holder did not publish. Its name says
/// which start of the machine it is of: damage in the same one has another reason, and is told.
/// There is one at most, because a holder removes those of earlier starts before it gives the name.
enum KeptVersion {
  static let prefix = "kept-"
  /// Its name in `lease/`; nil where nobody could tell one start of the machine from another.
  static let name: String? = ProcessIdentity.boot.isEmpty ? nil : prefix + ProcessIdentity.boot
  /// For how long after its publication others need not wait.
  static let freshness: Duration = .seconds(1)
  /// What is larger is always waited for. A file of one block is on the disk wholly or not at all;
  /// of a larger one a part may be, which a reader could not tell.
  static let maximumBytes = 4_096

  /// Whether a file's content never reached the disk: there is none, or zeros where it was to be.
  static func isMissing(_ content: [UInt8]) -> Bool {
    guard content.first ?? 0 == 0 else { return false }
    return content.count <= maximumBytes && content.allSatisfy { $0 == 0 }
  }

  /// The name of the kept version that stands for content that never reached the disk.
  ///
  /// - Parameter lease: the directory `lease`, open for reading.
  /// - Returns: nil when there is none; or when there is one of this start of the machine, which
  ///   therefore did not damage what was published in it.
  static func standIn(in lease: borrowing FileDescriptor) throws(Errno) -> String? {
    let names = try lease.entries().map(\.name.text).filter { $0.hasPrefix(prefix) }
    guard let name, !names.contains(name) else { return nil }
    return names.first
  }
}

/// How much a publication waits for the disk.
enum Diligence {
  /// Until it would survive the loss of power.
  case durable
  /// Until the content is written, so that after a loss of power the value is old or new.
  case written
  /// For nothing if there is a fresh kept version; else as long, and the content becomes the next one.
  ///
  /// - Parameter isFollowedUp: whether this process puts the value on the disk in a moment.
  case relaxed(isFollowedUp: Bool)
}

extension Lease {
  private static let above = "../"

  /// Whether content may be published without waiting for the disk.
  func hasFreshKeptVersion() throws(Errno) -> Bool {
    guard let name = KeptVersion.name else { return false }
    let status: FileStatus
    do throws(Errno) {
      status = try fileStatus(Self.above + name, at: held.descriptor.rawValue)
    } catch {
      guard error == .noSuchFile else { throw error }
      return false
    }
    let (seconds, nanoseconds) = realTime()
    let age =
      Duration.seconds(seconds - status.modifiedSeconds)
      + .nanoseconds(nanoseconds - status.modifiedNanoseconds)
    return status.kind == .regular && age >= .zero && age < KeptVersion.freshness
  }

  /// Gives the content that is about to be published a second name in the lease.
  ///
  /// - Returns: nil where the file system has no such names: then every publication waits.
  func nameTwice(_ staged: String) throws(Errno) -> String? {
    guard KeptVersion.name != nil else { return nil }
    let second = nextEntry()
    do throws(Errno) {
      let directory = stagingPlace.directory
      try link(staged, at: directory, to: second, at: directory)
      return second
    } catch {
      switch error {
      case .notPermitted, .unsupported, .tooManyNames, .noFunction, .accessDenied: return nil
      default: throw error
      }
    }
  }

  /// Makes content that is published, and on the disk, the kept version.
  ///
  /// If that fails, the value stays as it was published, the next publication waits again, and the
  /// next holder removes what is left in the lease.
  func keep(_ entry: String) {
    guard let name = KeptVersion.name else { return }
    let held = held.descriptor.rawValue
    do throws(Errno) {
      do throws(Errno) {
        _ = try fileStatus(Self.above + name, at: held)
      } catch {
        guard error == .noSuchFile else { throw error }
        try removeEarlier()
      }
      try rename(entry, at: stagingPlace.directory, to: Self.above + name, at: held)
    } catch {
      return
    }
  }

  private func removeEarlier() throws(Errno) {
    let lease = try site.openLeaseDirectory()
    for entry in try lease.remainingEntries() where entry.name.hasPrefix(KeptVersion.prefix) {
      try removeFile(entry.name, at: lease.rawValue)
    }
  }

  /// Removes the kept version before its value is: nothing that was removed may stand in for what is
  /// published after that. What is published now has to do without, so it is waited for.
  ///
  /// - Parameter value: its file; nil where there is none.
  func dropKept(of value: String?) throws(Errno) {
    guard let name = KeptVersion.name else { return }
    let held = held.descriptor.rawValue
    do throws(Errno) {
      _ = try fileStatus(Self.above + name, at: held)
      do throws(Errno) {
        if let value { try writeBack(site.layout.fromHeld + value, at: held) }
      } catch {
        // It goes in any case. Only a process that is killed right here would leave it damaged.
      }
      let entry = nextEntry()
      try rename(Self.above + name, at: held, to: entry, at: stagingPlace.directory)
      try removeFile(entry, at: stagingPlace.directory)
    } catch {
      // None of it is there any more; or the lease is not, which the removal itself finds out.
      guard error == .noSuchFile else { throw error }
    }
  }

  /// Waits until the content of a file has been written.
  ///
  /// - Parameter path: seen from the directory.
  func writeBack(_ path: String, at directory: Int32) throws(Errno) {
    let file = try FileDescriptor.open(path, at: directory, [.readOnly, .noFollow, .nonBlocking])
    try file.writeBack()
  }
}
