import FoundationEssentials
import PropertyLists

extension PropertyListValue {
  /// A value of the program's own type, as peers send it.
  init(encoding value: some Encodable) throws {
    self = try PropertyListValue(data: PropertyListCoding.encode(value))
  }

  /// A value that a peer sent, as one of the program's own type.
  ///
  /// - Throws: `PeerError`: `unexpectedValue`.
  func decoded<Content: Decodable>(
    as type: Content.Type, _ action: @autoclosure () -> String, from peer: String
  ) throws(PeerError) -> Content {
    do {
      return try PropertyListCoding.decode(type, from: Data(binaryBytes()))
    } catch {
      throw PeerError(
        .unexpectedValue, action(), peer: peer, reason: "it is no \(type): \(error)",
        remedy: "agree with the peer on the type that is sent")
    }
  }
}
