package import Wormhole
package import WormholePropertyLists

extension PropertyListValue {
  /// Reads content that another program may have put there; nil if it is no property list.
  package init?(found bytes: some Collection<UInt8>) {
    do throws(PropertyListError) {
      self = try PropertyListValue(bytes: Array(bytes))
    } catch {
      return nil
    }
  }
}

extension Batch {
  /// Reads a batch; nil if the content is none, which its consumer finds, too, and reports.
  package init?(found bytes: [UInt8], count: Int) {
    do throws(Batch.Unreadable) {
      try self.init(bytes: bytes, count: count)
    } catch {
      return nil
    }
  }
}
