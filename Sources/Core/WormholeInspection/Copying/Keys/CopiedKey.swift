import Wormhole

/// A part of a container on its way from one place to another: its key on etcd, and what that holds.
///
/// The layout of keys serves for directories, too: each kind of place is read and written in this form,
/// so that no pair of places needs code of its own.
package struct CopiedKey: Sendable {
  /// The letter of its kind.
  package enum Letter: String, Sendable {
    case value = "v"
    case bell = "n"
    case state = "s"
    case presence = "p"
    case consumer = "c"
    case queue = "q"

    var primitive: NameKind.Primitive {
      switch self {
      case .value: .value
      case .bell, .state: .notification
      case .presence: .presence
      case .consumer: .consumer
      case .queue: .queue
      }
    }
  }

  package let letter: Letter
  package let isOwn: Bool
  package let name: String
  /// What follows the name, without a slash before it: "e/<batch>" of a queue.
  package let part: String
  package let value: [UInt8]

  /// The random bytes before the content of a value.
  package static let stampBytes = 16

  init(_ letter: Letter, _ kind: NameKind, _ name: String, part: String = "", _ value: [UInt8]) {
    self.letter = letter
    isOwn = kind.isOwn
    self.name = name
    self.part = part
    self.value = value
  }

  /// Parses a key.
  ///
  /// - Parameter key: What follows the container's prefix and its slash.
  /// - Returns: Nil for a key that is none of a container's.
  package init?(_ key: ArraySlice<UInt8>, _ value: [UInt8]) {
    guard let key = ContainerKey(key), let letter = Letter(rawValue: key.letter),
      key.rest.isEmpty || ![.value, .bell, .state].contains(letter)
    else { return nil }
    self.letter = letter
    isOwn = key.isOwn
    name = key.name
    part = key.rest.joined(separator: "/")
    self.value = value
  }

  var kind: NameKind { NameKind(letter.primitive, isOwn: isOwn) }
}
