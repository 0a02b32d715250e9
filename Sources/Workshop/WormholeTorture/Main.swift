import WormholeEtcd
import WormholeSystem

@main
struct Main {
  static func main() {
    ignoreFatalWriteSignals()
    EtcdEngine.register()
    let arguments = Array(CommandLine.arguments.dropFirst())
    do {
      if arguments.first == "worker" {
        guard let json = arguments.last, json.hasPrefix("{") else {
          throw UsageError(description: "workers are started by the program itself")
        }
        try Worker(decoded(WorkerArguments.self, from: json)).run()
        Program.exit(0)
      }
      guard let options = try TortureOptions(arguments) else { return print(TortureOptions.help) }
      Program.exit(try TortureRun(options).run() ? 0 : 1)
    } catch {
      Terminal.say("torture: \(error)")
      Program.exit(error is UsageError ? 64 : 74)
    }
  }
}
