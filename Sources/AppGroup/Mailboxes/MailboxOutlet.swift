package import PropertyLists
import Synchronization
import SystemCalls

/// Posts into one mailbox, in the order of the calls as long as they follow one another. Thread-safe.
package final class MailboxOutlet: Sendable {
  /// How much may wait in a mailbox before a sender is refused.
  package struct Limits: Sendable {
    package var entries: Int
    package var bytes: Int

    /// 10,000 entries, 256 MiB.
    package static let standard = Limits(entries: 10_000, bytes: 256 << 20)

    package init(entries: Int, bytes: Int) {
      self.entries = entries
      self.bytes = bytes
    }
  }

  /// How a post ended.
  package enum Outcome: Sendable {
    case posted
    /// The mailbox's owner has ended, or has closed it.
    case gone
    /// As much as the limits allow waits there.
    case full
  }

  private struct State {
    var stamp: UInt64 = 0
    /// How much may still be posted before the next look.
    var entries = 0
    var bytes = 0
  }

  private let place: MailboxDirectory
  private let limits: Limits
  private let sender = Nonce.next()
  private let state = Mutex(State())

  /// - Returns: nil for what is no mailbox's address.
  package init?(in container: SharedContainer, to address: String, limits: Limits = .standard) {
    guard MailboxDirectory.isAddress(address) else { return nil }
    place = MailboxDirectory(root: container.root, address: address)
    self.limits = limits
  }

  /// Posts an entry: it is in the mailbox when this returns `posted`.
  ///
  /// - Throws: `AppGroupError`: `unsupportedValue` for what is no property list or too large, or what
  ///   the file system refuses; nothing is posted then.
  /// - Complexity: create, write, rename, close; a listing after each sixteenth of the limits.
  package func post(_ value: PropertyListValue) throws -> Outcome {
    let bytes = try encode(value)
    return try reporting("post into a mailbox", path: place.path) {
      do {
        guard try admits(bytes.count) else { return .full }
        try write(bytes)
        return .posted
      } catch let error as Errno where error == .noSuchFile {
        return .gone
      }
    }
  }

  private func encode(_ value: PropertyListValue) throws(AppGroupError) -> [UInt8] {
    do throws(PropertyListError) {
      let bytes = try value.binaryBytes()
      try PropertyListGuard.check(bytes)
      guard bytes.count <= Mailbox.maximumBytes else {
        throw PropertyListError(
          .tooManyBytes, at: .keyPath(""),
          "it has \(bytes.count) bytes, and at most \(Mailbox.maximumBytes) are taken")
      }
      return bytes
    } catch {
      throw AppGroupError(
        error.code.isOfSize ? .tooLarge : .unsupportedValue, "post into a mailbox",
        path: place.path, reason: "its owner would not accept the value: \(error.reason)",
        remedy: error.code.isOfSize ? "share large content as a file" : nil)
    }
  }

  private func write(_ bytes: [UInt8]) throws {
    let container = try place.root.handle().descriptor.rawValue
    let staged = place.relativePath + "/" + MailboxDirectory.stagedPrefix + Nonce.next()
    let file = try place.root.createFile(staged, at: container)
    do throws(Errno) {
      try file.writeAll(bytes)
      let name = MailboxEntryName(stamp: nextStamp(), sender: sender, bytes: bytes.count)
      try rename(
        staged, at: container, to: place.relativePath + "/" + name.text, at: container)
    } catch {
      let cause = error
      do throws(Errno) { try removeFile(staged, at: container) } catch {
        // Gone with the mailbox, or swept by its owner.
        throw cause
      }
      throw cause
    }
    state.withLock { state in
      state.entries -= 1
      state.bytes -= bytes.count
    }
  }

  private func nextStamp() -> UInt64 {
    state.withLock { state in
      state.stamp = max(bootTimeNanoseconds(), state.stamp &+ 1)
      return state.stamp
    }
  }

  // A look at all that waits allows a sixteenth of the limit at most until the next one.
  private func admits(_ size: Int) throws -> Bool {
    if state.withLock({ $0.entries >= 1 && $0.bytes >= size }) { return true }
    let container = try place.root.handle().descriptor.rawValue
    let names = try SharedContainer.entries(place.relativePath, at: container) ?? []
    let waiting = names.compactMap { MailboxEntryName($0.name) }
    let entries = limits.entries - waiting.count
    let bytes = limits.bytes - waiting.reduce(0) { $0 + $1.bytes }
    state.withLock { state in
      state.entries = min(entries, max(limits.entries / 16, 1))
      state.bytes = min(bytes, max(limits.bytes / 16, size))
    }
    return entries >= 1 && bytes >= size
  }
}

extension PropertyListError.Code {
  var isOfSize: Bool {
    [.tooManyBytes, .tooDeep, .tooManyNodes, .tooManyExpandedBytes].contains(self)
  }
}
