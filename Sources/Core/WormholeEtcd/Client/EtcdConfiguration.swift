/// The location of a cluster, and our identity there.
package struct EtcdConfiguration: Sendable {
  /// The addresses of members, such as "http://127.0.0.1:2379"; at least one.
  package var endpoints: [String]
  /// The files of TLS, for endpoints with "https://".
  package var security = TransportSecurity()
  /// The user, if the cluster asks for one.
  package var credentials: Credentials?
  /// The user's last token, which another process may have got; nil if none is kept.
  var token: TokenFile?
  /// How long one member may take for an answer before another one is asked. An only member may
  /// take half of the call's time, if that is longer.
  package var patience = Duration.seconds(3)
  /// How long a cluster that has never answered is asked again if each member's failure may last:
  /// no server listens, no address, not etcd. Nil for a call's whole time.
  package var firstPatience: Duration?
  /// How often the member that serves watches is checked, because a hanging one is silent.
  package var probeInterval = Duration.seconds(5)
  /// How long that member may take for its answer.
  package var probePatience = Duration.seconds(1)

  /// The longest answer of any kind; most kinds have a shorter limit, see `AnswerLimit`.
  package var maximumAnswerBytes = 64 << 20
  /// The transport of requests to members; by default the network.
  package var transport: any EtcdTransport = HTTPClient()

  package init(endpoints: [String]) {
    precondition(!endpoints.isEmpty, "a cluster has at least one endpoint")
    self.endpoints = endpoints
  }

  /// Returns how much of a call's time one member may take. An only member keeps its request while
  /// there is much time: a further request would ask it again, and leave a write in doubt. One of
  /// several that hangs leaves half of a short time to the others.
  func patience(until deadline: ContinuousClock.Instant) -> Duration {
    let left = ContinuousClock.now.duration(to: deadline)
    return endpoints.count == 1 ? min(left, max(left / 2, patience)) : min(left / 2, patience)
  }
}

/// The transport of requests to members. A test has its own, which answers wrongly.
package protocol EtcdTransport: Sendable {
  /// Posts a request, as `HTTPClient` does.
  func post(
    _ request: HTTPRequest, maximumBytes: Int, until deadline: ContinuousClock.Instant
  ) throws(HTTPError) -> HTTPAnswer
}

extension HTTPClient: EtcdTransport {}

/// A user of etcd.
package struct Credentials: Sendable {
  let user: String
  let password: Secret

  init(user: String, password: String) {
    self.user = user
    self.password = Secret(text: password)
  }
}

/// A text that no description shows.
struct Secret: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
  let text: String
  var description: String { "(hidden)" }
  var customMirror: Mirror { Mirror(self, children: []) }
}
