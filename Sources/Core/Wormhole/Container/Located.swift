/// A part of a container, as its engine keeps it: each has a place in the directory, or keys on etcd.
package protocol Located: Sendable {
  /// Its place for people: its path, or a description of its keys. Costs no system call.
  var path: String { get }
}
