import NSFileCoordination

/// A text that several programs edit at once, as an app for Apple's systems would do it: two threads add
/// lines, a presenter reads what others have added, and the copies of conflicts are merged.
public final class SharedText: NSObject, NSFilePresenter, Sendable {
  private let url: URL
  public let presentedItemOperationQueue = OperationQueue()
  public var presentedItemURL: URL? { return url }

  public init(_ url: URL) {
    self.url = url
    presentedItemOperationQueue.maxConcurrentOperationCount = 1
    super.init()
    NSFileCoordinator.addFilePresenter(self)
  }

  public func close() { NSFileCoordinator.removeFilePresenter(self) }

  public func presentedItemDidChange() { _ = lines() }

  public func presentedItemDidGain(_ version: NSFileVersion) { merge() }

  /// The lines of the text now.
  public func lines() -> [String] {
    var lines: [String] = []
    NSFileCoordinator(filePresenter: self).coordinate(
      readingItemAt: url, options: .withoutChanges, error: nil
    ) { lines = Self.lines($0) }
    return lines
  }

  private static func lines(_ url: URL) -> [String] {
    // A missing file has no lines, and another error is found by the count of all lines.
    let text = (try? String(contentsOf: url, encoding: .utf8)) ?? ""
    return text.split(separator: "\n").map(String.init)
  }

  /// Adds a line, if it is missing.
  public func add(_ line: String) {
    while !lines().contains(line) {
      if write([line]) != nil { merge() }
    }
  }

  private func write(_ new: [String]) -> NSError? {
    var failure: NSError?
    NSFileCoordinator(filePresenter: self).coordinate(
      writingItemAt: url, options: .forMerging, error: &failure
    ) { url in
      var all = Self.lines(url)
      // Two versions may have the same new line.
      for line in new where !all.contains(line) { all.append(line) }
      let text = all.map { $0 + "\n" }.joined()
      // The caller looks whether the line is there.
      try? text.write(to: url, atomically: true, encoding: .utf8)
    }
    return failure
  }

  /// Adds the lines of all conflicts to the text, and resolves them.
  public func merge() {
    let versions = NSFileVersion.unresolvedConflictVersionsOfItem(at: url) ?? []
    guard !versions.isEmpty, write(versions.flatMap { Self.lines($0.url) }) == nil else { return }
    for version in versions {
      version.isResolved = true
      // Another process may have merged it, too.
      try? version.remove()
    }
  }
}
