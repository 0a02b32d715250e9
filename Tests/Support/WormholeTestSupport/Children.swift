import WormholeSystem
package import WormholeToolkit

/// Helpers that run programs to their end.
package enum Children {
  /// Runs a program, and returns its termination and its output.
  package static func run(
    _ program: String, _ arguments: [String], environment: [String]? = nil
  ) throws -> (end: Termination?, output: String) {
    let null = try FileDescriptor.open("/dev/null", .readOnly)
    let pipe = try makePipe()
    let child = try ChildProcess(
      program, arguments, environment: environment, input: null.rawValue,
      output: pipe.write.rawValue)
    let reader = pipe.takeRead()
    let output = try reader.descriptor.readToEnd(expectedBytes: 0, maximumBytes: 1 << 20)
    return (
      try child.wait(until: .now + .seconds(30)), String(decoding: output, as: UTF8.self)
    )
  }
}
