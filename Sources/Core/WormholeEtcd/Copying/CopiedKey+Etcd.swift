import Wormhole
import WormholeInspection

extension CopiedKey {
  func key(in container: EtcdContainer) -> [UInt8] {
    container.key(letter.rawValue, isOwn: isOwn) + container.key(ofName: name)
      + Array((part.isEmpty ? "" : "/" + part).utf8)
  }
}
