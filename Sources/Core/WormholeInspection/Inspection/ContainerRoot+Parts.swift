import Wormhole

extension ContainerRoot {
  /// Returns the rows of a primitive's names, as its folder describes them.
  func parts(of primitive: NameKind.Primitive) -> [ContainerPart] {
    let own =
      switch primitive {
      case .value: ValueFile.parts
      case .notification: PostFile.parts
      case .presence, .consumer: PresenceDirectory.parts
      case .queue: QueueDirectory.parts
      case .log: LogDirectory.parts
      }
    return parts(own, of: primitive)
  }
}
