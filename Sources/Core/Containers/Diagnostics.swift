import SystemCalls

/// The place for errors that a source-compatible interface has no way to return, if the program has
/// set no handler: one line on standard error.
package enum Diagnostics {
  package static func report(_ error: any Error) {
    do throws(Errno) {
      try Program.write(Array("wormhole: \(error)\n".utf8), to: 2)
    } catch {
      // Standard error is closed, so the error cannot be reported.
      return
    }
  }
}
