import Foundation
import SystemCalls

@main
enum Main {
  static func main() {
    ignoreFatalWriteSignals()
    do {
      let options = try LaunchOptions(
        Array(CommandLine.arguments.dropFirst()),
        environment: ProcessInfo.processInfo.environment)
      if options.wantsHelp { return print(LaunchOptions.help, terminator: "") }
      guard let role = options.role else { exit(try Story(options).play() ? 0 : 1) }
      Cinema.begin(role, try options.openContainer(), options)
    } catch let problem as LaunchOptions.Problem {
      fail(problem.reason, 64)
    } catch {
      fail("\(error)", 74)
    }
    DispatchQueue.main.async { Side.begin() }
    dispatchMain()
  }

  static func fail(_ reason: String, _ status: Int32) -> Never {
    FileHandle.standardError.write(Data("cinematime: \(reason)\n".utf8))
    exit(status)
  }
}
