/// Where the pieces of a queue's files are: with etcd's keys, or in a directory that all machines
/// share (`files=` in the location), so that etcd keeps only names, sizes and checksums.
///
/// ```
/// t/<content>/<p>                          a key of the queue
/// <files>/<queue's keys>/<content>/<p>     the same in the directory; the name is encoded as that of a value
/// ```
protocol FilePieces: Sendable {
  var isInDirectory: Bool { get }

  /// Looks at the room, so that the first piece does not wait for that.
  func look() throws

  /// Waits until there is room for that many bytes.
  ///
  /// - Parameter check: Called now and then while it waits; throws to end the wait.
  func makeRoom(_ bytes: Int, _ check: () throws -> Void) throws

  /// Throws if the pieces of the queue cannot be seen from here.
  func confirm() throws

  /// Puts a piece, whose content never changes.
  func put(_ piece: [UInt8], _ name: String) throws

  /// Returns a piece; nil if it does not exist.
  func read(_ name: String) throws -> [UInt8]?

  /// Returns the contents that have pieces.
  func contents() throws -> Set<String>

  /// Returns the steps that remove pieces together with other keys.
  func removal(of content: String) -> [EtcdTransaction.Operation]

  /// Removes what no step of etcd can remove, after such a step.
  func discard(_ content: String) throws
}
