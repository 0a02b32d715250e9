package import Wormhole
import WormholeInspection
import WormholePropertyLists

/// The package's own names for a peer's data: the only place that knows them.
///
/// ```
/// presence  peer/<peer>                 the process that is reached under the name
/// presence  peer/<peer>/agent           the process that starts it for other machines
/// queue     peer/<peer>/messages        guaranteed messages to it
/// queue     peer/<peer>/files           files to it
/// queue     peer/<peer>/outgoing        files that it means to send; it is its only consumer
/// value     peer/outgoing/<peer>        which of these are given up while they are copied
/// value     peer/context/<from>/<to>    the context that one peer set for another
/// value     peer/seen/<from>/<to>       which of these the other was handed last
/// value     peer/launch/<peer>          how it is started
/// value     peer/launching/<peer>       how often it was, and the start under way
/// value     peer/wish/<peer>            the last wish of another machine that it be started
/// value     peer/pairing/<side>         the companions of a phone or a watch
/// value     peer/complication/<watch>   the transfers for a watch's complication
/// ```
///
/// In a peer's name "/" is written as `%2F` and "%" as `%25`, so that no two peers share a name.
package enum PeerNames {
  /// The maximum length of a peer's name in bytes, encoded like the names of values.
  package static let maximumBytes = 100

  enum Kept: String {
    case outgoing, context, seen, launch, launching, wish, pairing, complication
  }

  package static func presence(_ peer: String) -> String { name(peer) }
  static func agent(_ peer: String) -> String { name(peer, "agent") }
  package static func messages(_ peer: String) -> String { name(peer, "messages") }
  package static func files(_ peer: String) -> String { name(peer, "files") }
  package static func outgoingFiles(_ peer: String) -> String { name(peer, "outgoing") }

  package static func outgoingState(_ peer: String) -> String { name(.outgoing, peer) }
  package static func context(from sender: String, to receiver: String) -> String {
    name(.context, sender, receiver)
  }
  package static func seen(from sender: String, to receiver: String) -> String {
    name(.seen, sender, receiver)
  }
  package static func launch(_ peer: String) -> String { name(.launch, peer) }
  package static func launching(_ peer: String) -> String { name(.launching, peer) }
  static func wish(_ peer: String) -> String { name(.wish, peer) }
  package static func pairing(_ side: String) -> String { name(.pairing, side) }
  package static func complication(_ watch: String) -> String { name(.complication, watch) }

  private static func name(_ kept: Kept, _ peers: String...) -> String {
    name(of: [kept.rawValue] + peers)
  }

  private static func name(_ parts: String...) -> String { name(of: parts) }

  private static func name(of parts: [String]) -> String {
    "peer/" + parts.map(encoded).joined(separator: "/")
  }

  // MARK: And back

  package static func peer(ofPresence name: String) -> String? { peer(of: name) }

  static func peer(ofAgent name: String) -> String? { peer(of: name, "agent") }

  package static func peer(ofMessages name: String) -> String? { peer(of: name, "messages") }

  package static func peer(ofQueue name: String) -> String? {
    peer(ofMessages: name) ?? peer(of: name, "files")
  }

  package static func peer(ofOutgoingFiles name: String) -> String? { peer(of: name, "outgoing") }

  private static func peer(of name: String, _ suffix: String...) -> String? {
    guard let parts = parts(of: name), Array(parts.dropFirst()) == suffix else { return nil }
    return parts[0]
  }

  package static func peer(ofLaunch name: String) -> String? {
    kept(name).flatMap { $0.kept == .launch ? $0.peers[0] : nil }
  }

  /// Whether a value holds a peer's registration or its starts: it belongs to this machine.
  package static func isLaunch(_ name: String) -> Bool {
    kept(name).map { [.launch, .launching, .wish].contains($0.kept) } ?? false
  }

  static func kept(_ name: String) -> (kept: Kept, peers: [String])? {
    guard let parts = parts(of: name), let kept = Kept(rawValue: parts[0]),
      parts.count == (kept == .context || kept == .seen ? 3 : 2)
    else { return nil }
    return (kept, Array(parts.dropFirst()))
  }

  private static func parts(of name: String) -> [String]? {
    // By bytes: a combining mark at the beginning of a part would swallow the slash before it.
    let parts = name.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    guard parts.count > 1, parts[0].elementsEqual("peer".utf8) else { return nil }
    let decoded = parts.dropFirst().compactMap(Self.decoded)
    return decoded.count == parts.count - 1 ? decoded : nil
  }

  package static func isName(_ peer: String) -> Bool {
    !peer.isEmpty && EncodedName(peer).component.utf8.count <= maximumBytes
  }

  package static func check(_ peer: String) throws(WormholeError) {
    guard !isName(peer) else { return }
    let bytes = EncodedName(peer).component.utf8.count
    throw WormholeError(
      .unsupportedValue, "use \"\(peer)\" as a peer's name", peer: peer,
      reason: peer.isEmpty ? "it is empty" : "it has \(bytes) bytes once encoded",
      remedy: "take one of 1 to \(maximumBytes) bytes")
  }

  /// Whether two names are the same, byte for byte: as strings, "é" composed and decomposed are equal.
  package static func areSame(_ left: String?, _ right: String?) -> Bool {
    guard let left, let right else { return left == nil && right == nil }
    return left.utf8.elementsEqual(right.utf8)
  }

  private static func encoded(_ peer: String) -> String {
    let bytes = Array(peer.utf8).replacing("%".utf8, with: "%25".utf8)
    return String(decoding: bytes.replacing("/".utf8, with: "%2F".utf8), as: UTF8.self)
  }

  private static func decoded(_ text: Substring.UTF8View) -> String? {
    let bytes = Array(text).replacing("%2F".utf8, with: "/".utf8)
      .replacing("%25".utf8, with: "%".utf8)
    // Two names must not mean one peer, so no other text is a name.
    guard let peer = String(validating: bytes, as: UTF8.self), !peer.isEmpty,
      encoded(peer).utf8.elementsEqual(text)
    else { return nil }
    return peer
  }

  // MARK: For people

  package static func title(ofOwnPresence name: String) -> String? {
    peer(ofAgent: name).map { "the agent that starts \"\($0)\"" }
      ?? peer(ofPresence: name).map { "the peer \"\($0)\"" }
  }

  package static func title(ofOwnQueue name: String) -> String? {
    if let peer = peer(ofOutgoingFiles: name) { return "the files that \"\(peer)\" sends" }
    if let peer = peer(ofMessages: name) { return "the messages for \"\(peer)\"" }
    return peer(ofQueue: name).map { "the files for \"\($0)\"" }
  }
}
