import NSFileCoordination

/// Every form of a coordinated access, each as apps wrap it for tasks: a continuation that is resumed in the
/// accessor, and by the error. A second resumption ends the process.
public enum OnceForm: String, CaseIterable, Sendable {
  case reading, writing, deleting, replacing
  case readingAndWriting, writingBoth
  case preparing
  case readingIntent, writingIntent

  /// Whether the accessor changes the item.
  public var isWriting: Bool { ![.reading, .readingIntent, .preparing].contains(self) }

  /// Returns what the accessor returns, or the sentence of the error.
  public func outcome(
    _ item: URL, beside other: URL, _ accessor: @escaping @Sendable (URL) -> String
  ) async -> String {
    do {
      return try await run(item, beside: other, accessor)
    } catch {
      return "error \(error.localizedDescription)"
    }
  }

  /// Accesses an item.
  ///
  /// - Parameter accessor: gets the URL to use.
  /// - Returns: what the accessor returns.
  public func run(
    _ item: URL, beside other: URL, _ accessor: @escaping @Sendable (URL) -> String
  ) async throws -> String {
    try await withCheckedThrowingContinuation { continuation in
      var error: NSError?
      let coordinator = NSFileCoordinator()
      func resume(_ url: URL) { continuation.resume(returning: accessor(url)) }
      switch self {
      case .reading:
        coordinator.coordinate(readingItemAt: item, options: [], error: &error) { resume($0) }
      case .writing:
        coordinator.coordinate(writingItemAt: item, options: [], error: &error) { resume($0) }
      case .deleting:
        coordinator.coordinate(writingItemAt: item, options: .forDeleting, error: &error) {
          resume($0)
        }
      case .replacing:
        coordinator.coordinate(writingItemAt: item, options: .forReplacing, error: &error) {
          resume($0)
        }
      case .readingAndWriting:
        coordinator.coordinate(
          readingItemAt: other, options: [], writingItemAt: item, options: [], error: &error
        ) { _, url in resume(url) }
      case .writingBoth:
        coordinator.coordinate(
          writingItemAt: item, options: [], writingItemAt: other, options: [], error: &error
        ) { url, _ in resume(url) }
      case .preparing:
        coordinator.prepare(
          forReadingItemsAt: [item], options: [], writingItemsAt: [other], options: [],
          error: &error
        ) { done in
          resume(item)
          done()
        }
      case .readingIntent, .writingIntent:
        let intent =
          self == .readingIntent
          ? NSFileAccessIntent.readingIntent(with: item)
          : NSFileAccessIntent.writingIntent(with: item)
        coordinator.coordinate(with: [intent], queue: OperationQueue()) { error in
          if let error {
            continuation.resume(throwing: error)
          } else {
            continuation.resume(returning: accessor(intent.url))
          }
        }
      }
      if let error { continuation.resume(throwing: error) }
    }
  }
}
