import SystemCalls

@main
struct Main {
  static func main() {
    let arguments = Array(CommandLine.arguments.dropFirst())
    ignoreFatalWriteSignals()
    do {
      if arguments.first == "worker" {
        try Worker.run(Array(arguments.dropFirst()))
      } else {
        try Run(Options(arguments)).all()
      }
    } catch {
      Output.problem("\(error)")
      Program.exit(error is Options.Misuse ? 64 : 1)
    }
  }
}
