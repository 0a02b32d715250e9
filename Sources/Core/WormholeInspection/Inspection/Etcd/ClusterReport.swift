public import FoundationEssentials

/// The state of the etcd cluster that a container is on.
///
/// ```swift
/// guard let cluster = try container.report().cluster else { return }      // a directory has none
/// for member in cluster.members {
///   print(member.endpoint, member.failure ?? "answers", member.isLeader ? "leads" : "")
/// }
/// ```
public struct ClusterReport: Sendable {
  /// One member, as it said itself or as others know it.
  ///
  /// ```swift
  /// for member in try container.report().cluster?.members ?? [] {
  ///   print(member.endpoint, member.version ?? "?", member.roundTrip ?? .zero)
  /// }
  /// ```
  public struct Member: Sendable {
    /// Its address.
    public let endpoint: String
    /// Its name in the cluster, if somebody told it.
    public internal(set) var name: String?
    /// Its version of etcd.
    public internal(set) var version: String?
    /// Whether it leads the cluster.
    public internal(set) var isLeader = false
    /// The last revision that it knows.
    public internal(set) var revision: Int64?
    /// The size of its database's file in bytes.
    public internal(set) var databaseBytes: Int64?
    /// The part of it that is in use; the rest is freed by defragmenting.
    public internal(set) var usedBytes: Int64?
    /// How long its answer took.
    public internal(set) var roundTrip: Duration?
    /// By how much this machine's clock is ahead of the member's, at least; negative if it is behind,
    /// zero if both may agree, and nil if the member did not tell.
    public internal(set) var clockDifference: Duration?
    /// How long a watch took to tell something; nil if it was not tried, or told nothing.
    public internal(set) var watchDelay: Duration?
    /// Why a watch told nothing; nil if it did.
    public internal(set) var watchFailure: String?
    /// Why it did not answer; nil if it did.
    public internal(set) var failure: String?
    /// Whether the container's location names it.
    public internal(set) var isNamed = true
  }

  /// The replacement of the history by another one, such as a restored snapshot, as the first process of the
  /// container noted it that saw it.
  ///
  /// ```swift
  /// if let replaced = try container.report().cluster?.replacement {
  ///   print("restored before", replaced.date, "from revision", replaced.known, "to", replaced.found)
  /// }
  /// ```
  public struct Replacement: Sendable, Hashable {
    /// When it was noted, by the clock of that process.
    public let date: Date
    /// The revision that this process knew before.
    public let known: Int64
    /// The revision that the cluster answered with then.
    public let found: Int64
    /// The machine of the process.
    public let host: String
  }

  /// The members that the location names, and the others of the cluster.
  public internal(set) var members: [Member] = []
  /// Whether the members agree on a leader, without which nothing can be changed.
  public internal(set) var hasLeader = false
  /// The last revision.
  public internal(set) var revision: Int64 = 0
  /// The first revision whose history still exists; nil if it could not be found out.
  public internal(set) var oldestRevision: Int64?
  /// The last replacement of the history; nil if none was noted.
  public internal(set) var replacement: Replacement?
  /// The alarms that are raised, such as "NOSPACE".
  public internal(set) var alarms: [String] = []
  /// The user; nil if there is none.
  public internal(set) var user: String?
  /// Whether the connections are encrypted.
  public internal(set) var isEncrypted = false
  /// Whether only this machine is named.
  public internal(set) var isLoopback = false
  /// How long a process that says nothing is taken for alive.
  public internal(set) var lifetime: Duration = .zero
}
