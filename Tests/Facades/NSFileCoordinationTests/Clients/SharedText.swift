import NSFileCoordination
import Synchronization

/// A text that several programs edit at once, as an app for Apple's systems would do it: two threads add
/// lines, a presenter reads what others have added, and the copies of conflicts are merged.
public final class SharedText: NSObject, NSFilePresenter, Sendable {
  private let url: URL
  private let merged = Atomic(0)
  public let presentedItemOperationQueue = OperationQueue()
  public var presentedItemURL: URL? { return url }

  public init(_ url: URL) {
    self.url = url
    presentedItemOperationQueue.maxConcurrentOperationCount = 1
    super.init()
    NSFileCoordinator.addFilePresenter(self)
  }

  public func close() { NSFileCoordinator.removeFilePresenter(self) }

  /// How many versions it has merged.
  public var mergedVersions: Int { merged.load(ordering: .relaxed) }

  public func presentedItemDidChange() { _ = lines() }

  public func presentedItemDidGain(_ version: NSFileVersion) { merge() }

  /// The lines of the text now.
  public func lines() -> [String] {
    var lines: [String] = []
    NSFileCoordinator(filePresenter: self).coordinate(
      readingItemAt: url, options: .withoutChanges, error: nil
    ) {
      // The caller looks again, or counts the lines.
      lines = (try? Self.lines($0)) ?? []
    }
    return lines
  }

  private static func lines(_ url: URL) throws -> [String] {
    try String(contentsOf: url, encoding: .utf8).split(separator: "\n").map(String.init)
  }

  /// Adds a line, if it is missing.
  public func add(_ line: String) {
    while !lines().contains(line) {
      do { try write { [line] } } catch { merge() }
    }
  }

  private func write(_ new: () throws -> [String]) throws {
    var failure: NSError?
    var outcome: Result<Void, Error> = .success(())
    NSFileCoordinator(filePresenter: self).coordinate(
      writingItemAt: url, options: .forMerging, error: &failure
    ) { url in
      outcome = Result {
        var all = try Self.lines(url)
        // Two versions may have the same new line.
        var known = Set(all)
        for line in try new() where known.insert(line).inserted { all.append(line) }
        let text = all.map { $0 + "\n" }.joined()
        try text.write(to: url, atomically: true, encoding: .utf8)
      }
    }
    if let failure = failure { throw failure }
    try outcome.get()
  }

  /// Adds the lines of all conflicts to the text, and resolves them.
  public func merge() {
    let versions = NSFileVersion.unresolvedConflictVersionsOfItem(at: url) ?? []
    guard !versions.isEmpty else { return }
    do {
      try write { try versions.flatMap { try Self.lines($0.url) } }
    } catch {
      // Nothing is merged, so the versions stay: for the next time, or another process has merged them.
      return
    }
    // Nothing is merged either if another process took the access over.
    let known = Set(lines())
    for version in versions {
      // One that is gone was merged by another process.
      guard let own = try? Self.lines(version.url), known.isSuperset(of: own) else { continue }
      merged.add(1, ordering: .relaxed)
      version.isResolved = true
      // Another process may have merged it, too.
      try? version.remove()
    }
  }
}
