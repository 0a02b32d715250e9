import WormholeEtcd
import WormholeSystem

@main
struct Main {
  static func main() {
    let arguments = Array(CommandLine.arguments.dropFirst())
    ignoreFatalWriteSignals()
    EtcdEngine.register()
    do {
      if arguments.first == "worker" {
        try Worker.run(Array(arguments.dropFirst()))
      } else {
        let options = try Options(arguments)
        if let file = options.plotted {
          Output.line(try Plot(file: file).svg)
        } else {
          try Run(options).all()
        }
      }
    } catch {
      Output.problem("\(error)")
      Program.exit(error is Options.Misuse ? 64 : 1)
    }
  }
}
