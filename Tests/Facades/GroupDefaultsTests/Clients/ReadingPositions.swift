import Foundation

/// Where a reader stopped in each book, on all devices, as such programs are written.
public final class ReadingPositions {
  private let store = NSUbiquitousKeyValueStore.default
  private let lock = NSLock()
  private var news: [String] = []
  private var token: NSObjectProtocol?

  public init() {
    token = NotificationCenter.default.addObserver(
      forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: store, queue: nil
    ) { [weak self] note in self?.note(note) }
    store.synchronize()
  }

  deinit {
    if let token = token { NotificationCenter.default.removeObserver(token) }
  }

  private func note(_ note: Notification) {
    guard let reason = note.userInfo?[NSUbiquitousKeyValueStoreChangeReasonKey] as? Int,
      let keys = note.userInfo?[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String]
    else { return }
    let name: String
    switch reason {
    case NSUbiquitousKeyValueStoreServerChange: name = "server"
    case NSUbiquitousKeyValueStoreInitialSyncChange: name = "first"
    case NSUbiquitousKeyValueStoreQuotaViolationChange: name = "quota"
    default: name = "account"
    }
    lock.lock()
    news.append("\(name) \(keys.sorted().map { $0.prefix(20) }.joined(separator: ","))")
    lock.unlock()
  }

  /// What was posted, in its order.
  public var posted: String {
    lock.lock()
    defer { lock.unlock() }
    return news.joined(separator: "; ")
  }

  public func turn(_ book: String, to page: Int) {
    store.set(Int64(page), forKey: book)
    store.set(["page": page, "read": true], forKey: book + " details")
  }

  public func page(of book: String) -> Int { Int(store.longLong(forKey: book)) }

  public func isRead(_ book: String) -> Bool {
    store.dictionary(forKey: book + " details")?["read"] as? Bool ?? false
  }

  public func close(_ book: String) {
    store.removeObject(forKey: book)
    store.removeObject(forKey: book + " details")
  }

  /// More than a store takes.
  public func exceed() {
    store.set(1.5, forKey: String(repeating: "k", count: 65))
    store.set(Data(repeating: 1, count: 1_100_000), forKey: "large")
  }

  public var books: [String] {
    store.dictionaryRepresentation.keys.filter { !$0.hasSuffix(" details") }.sorted()
  }
}
