public import FoundationEssentials

/// The process that published something, and when.
///
/// It is the publisher's own statement, written together with the content in one file: it names a
/// program that uses this package, and proves nothing against a program that lies.
///
/// ```swift
/// let snapshot = try await container.value("seats").snapshot()
/// if let publisher = snapshot.publisher {
///   print("written by \(publisher.program), process \(publisher.processID), at \(publisher.date)")
/// }
/// ```
public struct Publisher: Sendable, Hashable, Encodable {
  /// Its process number, in its own namespace; another process may have it by now.
  public let processID: Int32
  /// The name of its program as the kernel keeps it, at most 15 bytes.
  public let program: String
  /// The peer that the process was in this container: the name of its active `PeerSession`; nil
  /// without one, and for a process with several.
  public let peer: String?
  /// The time of the publication, by the clock of its machine.
  public let date: Date
  package let nanosecondsSince1970: Int64

  private enum CodingKeys: String, CodingKey {
    case date, peer, program
    case processID = "process"
  }

  package init(processID: Int32, program: String, peer: String?, nanosecondsSince1970: Int64) {
    self.processID = processID
    self.program = program
    self.peer = peer
    date = Date(nanosecondsSince1970: nanosecondsSince1970)
    self.nanosecondsSince1970 = nanosecondsSince1970
  }

  /// Returns whether both are the same process, whatever the time.
  package func isSameProcess(as other: Publisher) -> Bool {
    processID == other.processID && program == other.program && peer == other.peer
  }
}

extension Publisher: CustomStringConvertible {
  /// "process 4711 (cinematime) as "phone"".
  public var description: String {
    let name = peer.map { " as \"\($0)\"" } ?? ""
    return "process \(processID) (\(program))\(name)"
  }
}

extension Date {
  package init(nanosecondsSince1970 nanoseconds: Int64) {
    self.init(timeIntervalSince1970: Double(nanoseconds) / 1e9)
  }
}
