import PropertyLists

extension PropertyListValue {
  /// A value that a peer sent, as one of the program's own type.
  ///
  /// - Throws: `PeerError`: `unexpectedValue`.
  func decoded<Content: Decodable>(
    as type: Content.Type, _ action: @autoclosure () -> String, from peer: String
  ) throws(PeerError) -> Content {
    do {
      return try decode(as: type)
    } catch {
      throw PeerError(
        .unexpectedValue, action(), peer: peer, reason: "it is no \(type): \(error)",
        remedy: "agree with the peer on the type that is sent")
    }
  }
}
