import WormholeSystem

/// The entries beside a value that no process is changing.
package enum Litter {
  /// Returns the entries of the lease directory, and those of `held` without the mark. On etcd there
  /// is nothing to lie beside a value.
  package static func entries(of key: String, in directory: TemporaryDirectory) -> [String] {
    guard TestEngine.current == .directory else { return ["held"] }
    let lease = directory.path + "/values/\(key)/lease"
    do {
      let outer = try FileDescriptor.open(lease, [.readOnly, .directory]).entries()
      let inner = try FileDescriptor.open(lease + "/held", [.readOnly, .directory]).entries()
      return outer.map(\.name.text).filter { !isPart($0) }.sorted()
        + inner.map(\.name.text).filter { $0 != "clean" }.sorted()
    } catch {
      return ["\(error)"]
    }
  }

  /// Returns whether an entry may stay in a lease: the note of the last takeover, and the kept
  /// version.
  package static func isPart(_ name: String) -> Bool {
    name == "taken.plist" || name == "kept-\(ProcessIdentity.boot)"
  }
}
