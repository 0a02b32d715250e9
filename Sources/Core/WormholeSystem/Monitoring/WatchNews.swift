/// The places where a watch reports changes; never their content.
package struct WatchNews: Sendable {
  /// Whether events were lost, or are not available: look at everything.
  package private(set) var isEverything = false
  /// The events of the watched file or directory itself.
  package private(set) var own: WatchEvents = []
  /// The events of a directory's entries.
  package private(set) var names: [FileName: WatchEvents] = [:]

  package init() {}

  package static var everything: WatchNews {
    var news = WatchNews()
    news.isEverything = true
    return news
  }

  mutating func note(_ events: WatchEvents, of name: FileName?) {
    if let name { names[name, default: []].formUnion(events) } else { own.formUnion(events) }
  }

  /// Adds a name to look at, or the news of another signal.
  package mutating func add(_ name: FileName) {
    names[name, default: []].formUnion([])
  }

  package mutating func merge(_ other: WatchNews) {
    isEverything = isEverything || other.isEverything
    own.formUnion(other.own)
    names.merge(other.names) { $0.union($1) }
  }
}

extension FileName {
  /// Creates the name of an event, which the kernel pads with NUL; nil if there is none.
  init?(event name: UnsafeRawBufferPointer) {
    let bytes = Array(name.prefix { $0 != 0 })
    guard !bytes.isEmpty else { return nil }
    self.init(bytes: bytes)
  }
}
