import AppGroup
import PropertyLists

/// The requests that are under way at one site: a value, a dictionary by the request's identifier.
///
/// A coordinator adds its request, waits while presenters' processes put their answers into it, and
/// removes it when its access is over: that is how presenters learn that it is. What a dead
/// coordinator left is removed by the next process that notices. Each change is an update under the
/// value's lease, so none is lost; an entry that is no request is dropped by the next change.
struct RequestBook: Sendable {
  typealias Requests = [String: PresenterRequest]

  let value: Value
  private static let maximumRequests = 10_000
  /// A reader takes no more than this for a book.
  private static let limits = PropertyListLimits(maximumBytes: 8 << 20)

  init(_ value: Value) {
    self.value = value
  }

  /// The requests under way; none when the file is damaged, because the next change mends it.
  static func requests(in snapshot: ValueSnapshot) -> Requests {
    do {
      return parse(try snapshot.propertyList(limits: limits))
    } catch {
      return [:]
    }
  }

  func requests() throws -> Requests { Self.requests(in: try value.snapshot(limits: Self.limits)) }

  private static func parse(_ content: PropertyListValue?) -> Requests {
    guard let all = content?.dictionaryValue, all.count <= maximumRequests else { return [:] }
    return all.compactMapValues { PresenterRequest($0) }
  }

  /// Changes the requests; a closure that changes nothing publishes nothing.
  func change(
    until deadline: ContinuousClock.Instant? = nil,
    _ body: @escaping @Sendable (inout Requests) -> Void
  ) throws {
    do {
      try update(until: deadline, body)
    } catch let error as AppGroupError where [.damaged, .tooLarge].contains(error.code) {
      // Not written by this package. No process reads requests in it, so nothing is lost with it.
      try value.remove(until: deadline)
      try update(until: deadline, body)
    }
  }

  private func update(
    until deadline: ContinuousClock.Instant?, _ body: @escaping @Sendable (inout Requests) -> Void
  ) throws {
    try value.update(until: deadline) { content in
      let old = Self.parse(content)
      var requests = old
      body(&requests)
      guard requests != old else { return }
      content = .dictionary(requests.mapValues(\.propertyList))
    }
  }

  func remove(_ id: String, until deadline: ContinuousClock.Instant? = nil) throws {
    try change(until: deadline) { $0[id] = nil }
  }

  func answer(_ id: String, _ presenter: String, _ answer: PresenterRequest.Answer) throws {
    try change { requests in
      guard requests[id]?.answers[presenter] != nil else { return }
      if case .moved = requests[id]?.subject {
        requests[id]?.answers[presenter] = nil
        if requests[id]?.answers.isEmpty == true { requests[id] = nil }
      } else {
        requests[id]?.answers[presenter] = answer
      }
    }
  }
}
