import WormholeShims

/// Creates a pipe whose ends are close-on-exec. The corresponding C function is `pipe2`.
package func makePipe() throws(Errno) -> PipeEnds {
  var ends: (Int32, Int32) = (-1, -1)
  _ = try perform(.pipe) {
    withUnsafeMutablePointer(to: &ends) {
      $0.withMemoryRebound(to: Int32.self, capacity: 2) { csys_pipe($0) }
    }
  }
  return PipeEnds(read: FileDescriptor(owning: ends.0), write: FileDescriptor(owning: ends.1))
}

package struct PipeEnds: ~Copyable {
  package let read: FileDescriptor
  package let write: FileDescriptor

  /// Keeps the read end and closes the other.
  package consuming func takeRead() -> SharedDescriptor { SharedDescriptor(read) }

  /// Keeps the write end and closes the other.
  package consuming func takeWrite() -> SharedDescriptor { SharedDescriptor(write) }

  /// Keeps both ends, each for as long as it is referred to.
  package consuming func takeBoth() -> (read: SharedDescriptor, write: SharedDescriptor) {
    (SharedDescriptor(read), SharedDescriptor(write))
  }
}
