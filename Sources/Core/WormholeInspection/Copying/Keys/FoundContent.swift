package import Wormhole
package import WormholePropertyLists

extension PropertyListValue {
  /// Reads content that another program may have put there; nil if it is not a property list.
  package init?(found bytes: some Collection<UInt8>) {
    // There may be anything, see above.
    guard let value = try? PropertyListValue(bytes: Array(bytes)) else { return nil }
    self = value
  }
}

extension Batch {
  /// Reads a batch; nil if the content is not one.
  package init?(found bytes: [UInt8], count: Int) {
    // Its consumer reports the error.
    guard let batch = try? Batch(bytes: bytes, count: count) else { return nil }
    self = batch
  }
}
