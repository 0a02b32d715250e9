import WormholeSystem

extension ValuesUpdate {
  /// Looks at all values as they were at one moment, without their leases.
  ///
  /// - Returns: Nil if they were changed during each of several tries.
  /// - Complexity: As reading each value, and one more call for each; again if one of them was
  ///   changed meanwhile.
  func snapshots() throws -> [PlainSnapshot]? {
    for _ in 0..<renameRaceLimit {
      let reads = try values.map(OptimisticRead.init)
      let root = container.root
      if reads.compactMap(\.directory).contains(where: { !root.showsEachChange(on: $0.device) }) {
        // A directory's times prove nothing here. A single absent value is looked at again, at the
        // moment for which all values are returned.
        let absent = zip(values, reads).filter { $1.directory != nil }
        guard absent.count == 1 else { return nil }
        guard try absent[0].0.version() == nil else { continue }
      }
      guard try zip(values, reads).allSatisfy({ try $1.isCurrent($0) }) else { continue }
      return reads.map(\.snapshot)
    }
    return nil
  }
}

/// A read of one of several values, and what shows that it has not changed since: its version, or
/// if it is absent its directory's times, which change with each publication and removal.
private struct OptimisticRead {
  let snapshot: PlainSnapshot
  /// The directory of an absent value; nil if it was never used.
  let directory: FileStatus?

  init(_ value: PlainValue) throws {
    let first = try value.snapshot()
    directory = first.isAbsent ? try value.store.file.directoryStatus() : nil
    // After the directory, so that one of the two shows a change between them. Without a directory
    // there is no value.
    snapshot = directory == nil ? first : try value.snapshot()
  }

  func isCurrent(_ value: PlainValue) throws -> Bool {
    guard try value.version() == snapshot.version else { return false }
    guard snapshot.isAbsent else { return true }
    let now = try value.store.file.directoryStatus()
    guard let directory, let now else { return (directory == nil) == (now == nil) }
    return now.isSameFile(as: directory) && now.isUntouched(since: directory)
  }
}
