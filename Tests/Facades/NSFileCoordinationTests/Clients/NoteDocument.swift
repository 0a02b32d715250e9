import NSFileCoordination

/// A document as apps write it for Apple's systems; only the name of the import differs. Its `try?` are of
/// that kind, too: accessors cannot throw, and the tests look at the file.
public class NoteDocument: NSObject, NSFilePresenter {
  public let fileURL: URL
  private let lock = NSLock()
  private var content = ""
  public var text: String {
    get {
      lock.lock()
      defer { lock.unlock() }
      return content
    }
    set {
      lock.lock()
      defer { lock.unlock() }
      content = newValue
    }
  }
  public var hasUnsavedChanges = false
  public private(set) var reloads = 0
  public private(set) var isShared = false

  public var presentedItemURL: URL? { return fileURL }
  public lazy var presentedItemOperationQueue: OperationQueue = {
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 1
    return queue
  }()

  public init(fileURL: URL) {
    self.fileURL = fileURL
    super.init()
  }

  public func open() throws {
    NSFileCoordinator.addFilePresenter(self)
    try load()
  }

  public func close() {
    NSFileCoordinator.removeFilePresenter(self)
  }

  public func load() throws {
    var coordinationError: NSError?
    var readError: Error?
    let coordinator = NSFileCoordinator(filePresenter: self)
    coordinator.coordinate(
      readingItemAt: fileURL, options: .withoutChanges, error: &coordinationError
    ) { url in
      do {
        text = try String(contentsOf: url, encoding: .utf8)
      } catch {
        readError = error
      }
    }
    if let error = coordinationError { throw error }
    if let error = readError { throw error }
  }

  public func save() throws {
    var failure: NSError?
    NSFileCoordinator(filePresenter: self).coordinate(
      writingItemAt: fileURL, options: [], error: &failure
    ) { newURL in
      try? text.write(to: newURL, atomically: true, encoding: .utf8)
    }
    if let failure = failure { throw failure }
    hasUnsavedChanges = false
  }

  // MARK: NSFilePresenter

  public func presentedItemDidChange() {
    reloads += 1
    try? load()
  }

  public func relinquishPresentedItem(toReader reader: @escaping ((() -> Void)?) -> Void) {
    isShared = true
    reader { self.isShared = false }
  }

  public func savePresentedItemChanges(completionHandler: @escaping (Error?) -> Void) {
    guard hasUnsavedChanges else { return completionHandler(nil) }
    do {
      try save()
      completionHandler(nil)
    } catch {
      completionHandler(error)
    }
  }
}

/// Functions as they are found around documents.
public enum NoteFiles {
  public static func move(_ source: URL, to destination: URL) -> NSError? {
    var error: NSError?
    let coordinator = NSFileCoordinator()
    coordinator.coordinate(
      writingItemAt: source, options: .forMoving, writingItemAt: destination,
      options: .forReplacing, error: &error
    ) { source, destination in
      coordinator.item(at: source, willMoveTo: destination)
      try? FileManager.default.moveItem(at: source, to: destination)
      coordinator.item(at: source, didMoveTo: destination)
    }
    return error
  }

  public static func append(
    _ line: String, to url: URL, completion: @escaping @Sendable (Error?) -> Void
  ) {
    let intent = NSFileAccessIntent.writingIntent(with: url, options: .forMerging)
    let queue = OperationQueue()
    NSFileCoordinator(filePresenter: nil).coordinate(with: [intent], queue: queue) { error in
      if let error = error { return completion(error) }
      let old = (try? String(contentsOf: intent.url, encoding: .utf8)) ?? ""
      try? (old + line).write(to: intent.url, atomically: false, encoding: .utf8)
      completion(nil)
    }
  }

  public static func sharedURL(_ name: String) -> URL? {
    return FileManager.default
      .containerURL(forSecurityApplicationGroupIdentifier: "group.com.example.notes")?
      .appendingPathComponent(name)
  }
}
