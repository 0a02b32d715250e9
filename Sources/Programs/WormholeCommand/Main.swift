import Wormhole
import WormholeEtcd
import WormholeSystem
import WormholeToolkit

@main
struct Main {
  static func main() {
    // A closed pipe, or a file that may not grow, causes an error to report, not the end.
    prepareSignals()
    EtcdEngine.register()
    Diagnostics.onEvent = { event in
      if [.failure, .quarantine, .patience].contains(event.kind) {
        // With standard error closed, only the exit status can report it.
        try? Program.write("\(ProgramName.called): \(event.message)\n", to: 2)
      }
    }
    let program = WormholeProgram(root: .root, environment: .process)
    let status = program.run(Array(Program.rawArguments.dropFirst()))
    SharedContainer.followUpBeforeExit()
    Program.exit(status.rawValue)
  }
}

/// A function that the linker puts among those that run before `main`; its number puts it before
/// those of Swift's runtime. It must not use the runtime.
@section(".init_array.00101") @used
private let beforeTheRuntime:
  @convention(c) (Int32, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Void = {
    Program.prepareRuntime($0, $1)
  }
