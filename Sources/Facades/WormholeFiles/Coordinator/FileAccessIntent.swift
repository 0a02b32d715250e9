public import Dispatch
public import FoundationEssentials
import Synchronization

/// One item of an access to several; its accessor reads the item's URL here.
///
/// ```swift
/// let old = FileAccessIntent.writingIntent(with: file, options: .forMoving)
/// let new = FileAccessIntent.writingIntent(with: file.appendingPathExtension("old"), options: .forReplacing)
/// try FileCoordinator().coordinate(with: [old, new]) {
///   try FileManager.default.moveItem(at: old.url, to: new.url)
/// }
/// ```
public final class FileAccessIntent: Sendable {
  let request: AccessRequest
  private let place: Mutex<URL>

  private init(_ request: AccessRequest) {
    self.request = request
    place = Mutex(request.url)
  }

  /// To read an item.
  public static func readingIntent(
    with url: URL, options: ReadingOptions = []
  ) -> FileAccessIntent {
    FileAccessIntent(.reading(url, options))
  }

  /// To change an item.
  public static func writingIntent(
    with url: URL, options: WritingOptions = []
  ) -> FileAccessIntent {
    FileAccessIntent(.writing(url, options))
  }

  /// The URL to use for the item while the accessor runs; before that, the requested URL.
  public var url: URL { place.withLock { $0 } }

  package var isReading: Bool { request.kind.isReading }

  func set(_ url: URL) { place.withLock { $0 = url } }
}

extension FileCoordinator {
  /// Reads and changes any number of items, acquired in one canonical order, so no two calls wait
  /// for each other in a circle. Name a task's items in one call: several calls at once can.
  ///
  /// - Parameters:
  ///   - intents: the items; the accessor finds each at its intent's `url`.
  ///   - deadline: When to stop waiting for others; by default `standardWait` from now.
  ///   - term: How long the copies and the accessor may take before others may take the access over.
  ///   - accessor: see the forms for one item.
  /// - Throws: as the forms for one item.
  public func coordinate<Result: Sendable>(
    with intents: [FileAccessIntent], until deadline: ContinuousClock.Instant? = nil,
    term: Duration = FileCoordinator.standardTerm,
    byAccessor accessor: @Sendable () async throws -> Result
  ) async throws -> Result {
    let asked = intents.map(\.url)
    defer { for (intent, url) in zip(intents, asked) { intent.set(url) } }
    return try await access(intents.map(\.request), until: deadline, term: term) { urls in
      for (intent, url) in zip(intents, urls) { intent.set(url) }
      return try await accessor()
    }
  }

  /// Reads and changes any number of items, from a thread that may block.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func coordinate<Result>(
    with intents: [FileAccessIntent], until deadline: ContinuousClock.Instant? = nil,
    term: Duration = FileCoordinator.standardTerm, byAccessor accessor: () throws -> Result
  ) throws -> Result {
    let asked = intents.map(\.url)
    defer { for (intent, url) in zip(intents, asked) { intent.set(url) } }
    return try access(intents.map(\.request), until: deadline, term: term) { urls in
      for (intent, url) in zip(intents, urls) { intent.set(url) }
      return try accessor()
    }
  }

  /// Like the original's form: returns at once, and calls the accessor on a queue.
  ///
  /// - Parameters:
  ///   - intents: The items; the accessor finds each at its intent's `url`.
  ///   - queue: Where the accessor is called.
  ///   - deadline: When to stop waiting for others; by default `standardWait` from now.
  ///   - term: How long the copies and the accessor may take before others may take the access over.
  ///   - accessor: Called with nil if access was granted, otherwise with an error. If its changes
  ///     could not be published, it is called again with the error. This case does not exist in the
  ///     original, which changes items in place.
  public func coordinate(
    with intents: [FileAccessIntent], queue: DispatchQueue,
    until deadline: ContinuousClock.Instant? = nil, term: Duration = FileCoordinator.standardTerm,
    byAccessor accessor: @escaping @Sendable ((any Error)?) -> Void
  ) {
    Task {
      do {
        try await coordinate(with: intents, until: deadline, term: term) {
          await withCheckedContinuation { continuation in
            queue.async {
              accessor(nil)
              continuation.resume()
            }
          }
        }
      } catch {
        queue.async { accessor(error) }
      }
    }
  }
}
