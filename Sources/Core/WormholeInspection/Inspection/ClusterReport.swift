public import FoundationEssentials

/// The state of the etcd cluster that a container is on.
///
/// ```swift
/// guard let cluster = try container.report().cluster else { return }      // a directory has none
/// for member in cluster.members {
///   print(member.endpoint, member.failure ?? "answers", member.isLeader ? "leads" : "")
/// }
/// ```
public struct ClusterReport: Sendable, Encodable {
  /// One member, by its own report or by other members.
  ///
  /// ```swift
  /// for member in try container.report().cluster?.members ?? [] {
  ///   print(member.endpoint, member.version ?? "?", member.roundTrip ?? .zero)
  /// }
  /// ```
  public struct Member: Sendable, Encodable {
    /// Its address.
    public let endpoint: String
    /// Its name in the cluster, if it is known.
    public package(set) var name: String?
    /// Its version of etcd.
    public package(set) var version: String?
    /// Whether it leads the cluster.
    public package(set) var isLeader = false
    /// The last revision that it knows.
    public package(set) var revision: Int64?
    /// The size of its database's file in bytes.
    public package(set) var databaseBytes: Int64?
    /// The part of the database that is in use; defragmenting frees the rest.
    public package(set) var usedBytes: Int64?
    /// How long its answer took.
    public package(set) var roundTrip: Duration?
    /// How far this machine's clock is ahead of the member's, at least; negative if it is behind,
    /// zero if both may agree, and nil if the member did not report its time.
    public package(set) var clockDifference: Duration?
    /// The time until a watch reported; nil if it was not tried, or reported nothing.
    public package(set) var watchDelay: Duration?
    /// Why a watch reported nothing; nil if it reported.
    public package(set) var watchFailure: String?
    /// Why it did not answer; nil if it did.
    public package(set) var failure: String?
    /// Whether the container's location names it.
    public package(set) var isNamed = true

    private enum CodingKeys: String, CodingKey {
      case endpoint, name, version, isLeader, revision, databaseBytes, usedBytes, watchFailure
      case failure, isNamed
      case roundTrip = "roundTripMilliseconds"
      case clockDifference = "clockDifferenceSeconds"
      case watchDelay = "watchMilliseconds"
    }

    package init(endpoint: String) { self.endpoint = endpoint }
  }

  /// The replacement of the history by another one, such as a restored snapshot, as noted by the
  /// first process of the container that saw it.
  ///
  /// ```swift
  /// if let replaced = try container.report().cluster?.replacement {
  ///   print("restored before", replaced.date, "from revision", replaced.known, "to", replaced.found)
  /// }
  /// ```
  public struct Replacement: Sendable, Hashable, Encodable {
    /// The time of the note, by the clock of that process.
    public let date: Date
    /// The revision that this process knew before.
    public let known: Int64
    /// The revision of the cluster's answer.
    public let found: Int64
    /// The machine of the process.
    public let host: String

    package init(date: Date, known: Int64, found: Int64, host: String) {
      self.date = date
      self.known = known
      self.found = found
      self.host = host
    }
  }

  /// A certificate, as far as it concerns people.
  ///
  /// ```swift
  /// for certificate in try container.report().cluster?.certificates ?? [] {
  ///   print(certificate.place, "ends", certificate.end)
  /// }
  /// ```
  public struct Certificate: Sendable, Hashable, Encodable {
    /// Its file, or the address of the member that has it.
    public let place: String
    /// Its end.
    public let end: Date
    /// The common name of its subject; nil if it has none.
    public let commonName: String?
    /// Whether this program identifies itself by it.
    public let isOwn: Bool

    package init(place: String, end: Date, commonName: String?, isOwn: Bool = false) {
      self.place = place
      self.end = end
      self.commonName = commonName
      self.isOwn = isOwn
    }
  }

  /// The members that the location names, and the others of the cluster.
  public package(set) var members: [Member] = []
  /// Whether the members agree on a leader, without which nothing can be changed.
  public package(set) var hasLeader = false
  /// The last revision.
  public package(set) var revision: Int64 = 0
  /// The first revision whose history still exists; nil if it is unknown.
  public package(set) var oldestRevision: Int64?
  /// The last replacement of the history; nil if none was noted.
  public package(set) var replacement: Replacement?
  /// The number of the container's keys; nil if it is unknown.
  public package(set) var keys: Int?
  /// The number of leases in the cluster, of all its users; nil if it is unknown.
  public package(set) var leases: Int?
  /// The prefixes of other containers whose keys include this one's, or lie among this one's.
  public package(set) var nested: [String] = []
  /// The certificates of the location and of the members that answered.
  public package(set) var certificates: [Certificate] = []
  /// The alarms that are raised, such as "NOSPACE".
  public package(set) var alarms: [String] = []
  /// The user; nil if there is none.
  public package(set) var user: String?
  /// Whether the connections are encrypted.
  public package(set) var isEncrypted = false
  /// Whether only this machine is named.
  public package(set) var isLoopback = false
  /// How long a silent process counts as alive.
  public package(set) var lifetime: Duration = .zero

  private enum CodingKeys: String, CodingKey {
    case members, hasLeader, revision, oldestRevision, replacement, keys, leases, nested
    case certificates, alarms, user, isEncrypted, isLoopback
    case lifetime = "lifetimeSeconds"
  }

  package init() {}
}
