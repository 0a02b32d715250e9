import Foundation
import WatchConnectivity
import Wormhole
import WormholeEtcd
import WormholeSystem
import WormholeTerminals
import WormholeToolkit

@main
enum Main {
  static func main() {
    prepareSignals()
    EtcdEngine.register()
    Diagnostics.onEvent = { event in
      // With standard error closed, no program reads it.
      if event.kind == .failure { try? Program.write("wormhole: \(event.message)\n", to: 2) }
    }
    do {
      let options = try LaunchOptions(
        argumentTexts(), environment: ProcessInfo.processInfo.environment)
      if options.wantsHelp { return print(LaunchOptions.help, terminator: "") }
      guard let role = options.role else { exit(try Story().play() ? 0 : 1) }
      try Cinema.begin(as: role, options)
    } catch let misuse as Misuse {
      Cinema.fail(misuse.description, 64)
    } catch let failure as LineProcess.Failure {
      Cinema.fail("the story has failed: \(failure)", 1)
    } catch {
      Cinema.fail("\(error)", 74)
    }
    DispatchQueue.main.async { begin() }
    dispatchMain()
  }

  @MainActor
  private static func begin() {
    do {
      try TicketOffice.shared.open()
      try Installation.register()
      if Cinema.options.isInBackground {
        try BackgroundStay.begin()
      } else if Cinema.isPhone {
        try BackgroundStay.takeover.post()
      }
    } catch {
      Cinema.fail("\(error)", 74)
    }
    if !Cinema.options.isInBackground {
      Program.isTerminal(0) && Program.isTerminal(1) ? Screen.shared.begin() : Commands.begin()
    }
    // Last, because its first event may come at once, and the screen has to show it.
    _ = Connectivity.shared
  }
}
