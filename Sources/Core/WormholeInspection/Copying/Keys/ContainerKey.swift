import Wormhole

/// A key of a container on etcd by its parts: "own/q/<name>/e/<batch>". See the page EtcdKeys.
package struct ContainerKey: Sendable {
  package let letter: String
  package let isOwn: Bool
  package let name: String
  /// The parts after the name.
  package let rest: [String]

  /// Parses a key without the container's prefix and its slash.
  ///
  /// - Returns: Nil for a key that does not belong to a name.
  package init?(_ key: some Collection<UInt8>) {
    var parts = key.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)[...]
    isOwn = parts.first?.elementsEqual("own".utf8) == true
    if isOwn { parts = parts.dropFirst() }
    guard let letter = parts.popFirst(),
      let name = parts.popFirst().flatMap({ EncodedName.identifier(ofKey: $0) })
    else { return nil }
    self.letter = String(decoding: letter, as: UTF8.self)
    self.name = name
    rest = parts.map { String(decoding: $0, as: UTF8.self) }
  }
}
