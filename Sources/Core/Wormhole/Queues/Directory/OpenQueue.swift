import Synchronization
import WormholeSystem

/// A queue's directory, held open from one step of a sender or consumer to the next.
///
/// Every step is a call on a path through this directory, so the step notices a removed directory
/// (ENOENT), which is then opened again. A directory that was moved away goes unnoticed for at most
/// a second, as with the container, unless a watch reports it.
final class OpenQueue: Sendable {
  private struct Held {
    let place: QueueDirectory
    let container: ContainerRoot.Handle
    let opened: ContinuousClock.Instant
  }

  let queue: Queue
  private let held = Mutex<Held?>(nil)

  init(_ queue: Queue) { self.queue = queue }

  /// Returns the directory.
  ///
  /// - Parameter make: opens it if it is not held: nil if there is none.
  private func place(_ make: () throws -> QueueDirectory?) throws -> QueueDirectory? {
    var courtesy = PictureSign.Courtesy()
    courtesy.wait(in: queue.directory.root)
    let container = try queue.directory.root.handle()
    let now = ContinuousClock.now
    let known = held.withLock { held -> QueueDirectory? in
      guard let held, held.container === container, now - held.opened < ContainerRoot.recheck
      else { return nil }
      return held.place
    }
    if let known { return known }
    let place = try make()
    // Released outside the lock, because that closes a file.
    let old = held.withLock { held in
      defer { held = place.map { Held(place: $0, container: container, opened: now) } }
      return held
    }
    withExtendedLifetime(old) {}
    return place
  }

  /// Returns the directory, and creates it if it is missing.
  func openOrMake() throws -> QueueDirectory {
    guard let place = try place({ try queue.openOrMake() }) else { throw queue.replaced() }
    return place
  }

  /// Returns the directory. A consumer does not create it: if it is gone, so are the batches that
  /// the consumer had taken.
  func openForConsumer() throws -> QueueDirectory {
    guard let place = try place({ try queue.open() }) else { throw queue.replaced() }
    return place
  }

  /// Opens the directory again with the next step, if a watch of one of its parts reports that it may
  /// have been moved away.
  func note(_ news: WatchNews) {
    if news.isEverything || !news.own.isEmpty { forget() }
  }

  /// Opens the directory again with the next step, because a part of it is missing.
  func forget() {
    let old = held.withLock { held in
      defer { held = nil }
      return held
    }
    withExtendedLifetime(old) {}
  }
}
