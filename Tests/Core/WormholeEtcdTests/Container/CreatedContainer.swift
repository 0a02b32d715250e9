import Wormhole

@testable import WormholeEtcd

extension EtcdContainer {
  /// Returns a container that exists, without a look at it through its own transport.
  static func created(
    _ location: EtcdLocation, through transport: (any EtcdTransport)? = nil,
    room: EtcdRoom = EtcdRoom()
  ) throws -> EtcdContainer {
    _ = try open(location, CallLimit())
    return try unopened(location, through: transport, room: room)
  }
}
