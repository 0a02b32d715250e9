import WormholeSystem

/// A pipe through which a program receives the tokens of notifications, as four bytes each in the
/// order of the network (notify_register_file_descriptor(3)).
///
/// Its registrations own both ends. Their handlers own only the end for writing, so a handler that
/// waits for room in the pipe ends when its registration does.
package struct TokenPipe: Sendable {
  private let ends: (read: SharedDescriptor, write: SharedDescriptor)

  /// - Throws: `WormholeError` if the process's descriptors are used up.
  package init() throws {
    ends = try reporting("make a pipe for notifications", path: "") { try makePipe().takeBoth() }
  }

  package var readEnd: Int32 { ends.read.descriptor.rawValue }

  /// The handler of a registration. It waits while the pipe is full; posts in the meantime are one.
  package var handler: @Sendable (Int32) -> Void {
    { [write = ends.write] token in
      let bytes = withUnsafeBytes(of: token.bigEndian) { [UInt8]($0) }
      let written = withoutBrokenPipeSignal {
        Result { () throws(Errno) in try Program.write(bytes, to: write.descriptor.rawValue) }
      }
      // A broken pipe means that the registration was cancelled meanwhile.
      if case .failure(let error) = written, error != .brokenPipe { Diagnostics.report(error) }
    }
  }
}

/// A signal to this process after a post (notify_register_signal(3)).
package struct NotificationSignal: Sendable {
  private let number: Int32

  /// - Returns: nil for a number that is not a signal's.
  package init?(number: Int32) {
    guard (1...64).contains(number) else { return nil }
    self.number = number
  }

  package var handler: @Sendable (Int32) -> Void {
    { [number] _ in
      Diagnostics.reporting(otherwise: ()) {
        try Program.send(number: number, to: Program.processID)
      }
    }
  }
}
