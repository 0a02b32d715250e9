import Containers
import Entries
import SystemCalls

/// Looking up the entries of one batch, wherever it is by now.
///
/// The batch is opened by name, first in `pending/`, then with the consumer, because it only ever
/// moves in that direction. If a consumer is replaced in the meantime, its directory gets another
/// name and is looked up again.
extension QueueDirectory {
  /// - Parameters:
  ///   - indices: the entries' indices.
  ///   - readsContent: false if none of them is known to have been withdrawn lately; the file then
  ///     need not be read as long as it is there.
  /// - Returns: the status of each, as far as it is known.
  func statuses(
    of batch: EntryFile, _ indices: Set<Int>, readsContent: Bool = true,
    at place: borrowing FileDescriptor
  ) throws -> [Int: QueueEntryStatus] {
    for _ in 0..<renameRaceLimit {
      let pending = Self.pendingPath(batch)
      if let waiting = try look(pending, batch, indices, .stored, readsContent, at: place) {
        return waiting
      }
      guard let consumer = try consumer(at: place) else {
        return try ends(of: batch, indices, at: place)
      }
      let path = "\(Self.taken)/\(consumer)/\(batch.text)"
      if var taken = try look(path, batch, indices, .taken, readsContent, at: place) {
        let done = try settled(path, at: place).intersection(indices)
        let settled = done.filter { taken[$0] == .taken }
        taken.merge(try ends(of: batch, settled, at: place)) { $1 }
        return taken
      }
      // It is gone from there, unless its consumer has just been replaced.
      if try self.consumer(at: place) == consumer {
        return try ends(of: batch, indices, at: place)
      }
    }
    throw Errno.deviceBusy
  }

  /// - Returns: nil if there is no such file.
  private func look(
    _ path: String, _ batch: EntryFile, _ indices: Set<Int>, _ status: QueueEntryStatus,
    _ readsContent: Bool, at place: borrowing FileDescriptor
  ) throws -> [Int: QueueEntryStatus]? {
    var statuses = Dictionary(uniqueKeysWithValues: indices.map { ($0, status) })
    do {
      guard readsContent else { return try exists(path, at: place) ? statuses : nil }
      guard let bytes = try read(path, at: place) else { return nil }
      let content = try Batch(bytes: bytes, count: batch.count)
      for index in indices where content.entries[index].payload == nil {
        statuses[index] = content.entries[index].withdrawal
      }
      return statuses
    } catch is Batch.Unreadable {
      // Its consumer will find the same.
      return statuses
    }
  }

  /// Returns how entries have ended that are neither waiting nor taken.
  private func ends(
    of batch: EntryFile, _ indices: Set<Int>, at place: borrowing FileDescriptor
  ) throws -> [Int: QueueEntryStatus] {
    var ends: [Int: QueueEntryStatus] = [:]
    for index in indices {
      let id = QueueEntryID(batch: batch, index: index)
      do {
        let bytes = try read(Self.outcomePath(id), at: place)
        ends[index] = bytes.map { OutcomeFile.status($0) } ?? .processed
      } catch let error as Batch.Unreadable {
        ends[index] = .failed(reason: "the note of its end is damaged: \(error.reason)")
      }
    }
    return ends
  }

  /// Returns the entries of a taken batch that are settled.
  func settled(_ path: String, at place: borrowing FileDescriptor) throws -> Set<Int> {
    try numbers(path + Self.doneSuffix, at: place)
  }

  /// Returns the numbers of entries in a file that has one in each line.
  func numbers(_ path: String, at place: borrowing FileDescriptor) throws -> Set<Int> {
    guard let bytes = try readNote(path, at: place) else { return [] }
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    return Set(lines.compactMap { Int($0) })
  }

  /// Returns what is recorded beside a batch; nil if nothing is.
  func readNote(_ path: String, at place: borrowing FileDescriptor) throws -> [UInt8]? {
    do {
      return try read(path, at: place)
    } catch is Batch.Unreadable {
      // Planted by somebody: it is ignored, and everything is delivered or reported again.
      return nil
    }
  }

  /// Appends a line to such a file, and creates the file if it is missing.
  func append(
    _ line: String, to path: String, at place: borrowing FileDescriptor
  ) throws(Errno) {
    let line = Array(line.utf8)
    for _ in 0..<renameRaceLimit {
      do throws(Errno) {
        return try FileDescriptor.openBeneath(path, at: place.rawValue, [.writeOnly, .append])
          .writeAll(line)
      } catch {
        guard error == .noSuchFile else { throw error }
      }
      do throws(Errno) {
        return try root.createFile(path, at: place.rawValue).writeAll(line)
      } catch {
        // Another thread of its sender was faster.
        guard error == .alreadyExists else { throw error }
      }
    }
    throw .deviceBusy
  }
}
