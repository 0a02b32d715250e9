import SystemCalls

/// Where an error goes that a source-compatible interface has no way to return and for which the
/// program has set no handler: one line on standard error.
package enum Diagnostics {
  package static func report(_ error: any Error) {
    do throws(Errno) {
      try Program.write(Array("wormhole: \(error)\n".utf8), to: 2)
    } catch {
      // Standard error is closed: there is nowhere left to say so.
      return
    }
  }
}
