import Foundation
import Testing
import WormholeSystem
import WormholeTestSupport

@testable import WormholeCommand

@Suite("A command that waits notifies its starter when it is ready", .blocking)
struct ReadinessTests {
  @Test("on the descriptor of --ready-fd, once, and closes it")
  func descriptor() throws {
    let commands = [
      "listen a", "notify wait a", "defaults watch", "watch file",
      "log read --follow a --subscriber b", "monitor",
      "peer list --watch", "peer receive a", "peer receive a --files files",
      "peer serve a -- true",
      "queue take a", "presence wait a", "status --watch",
    ]
    let scripts = commands.map { command in
      let parts = command.components(separatedBy: " -- ")
      let tail = parts.count > 1 ? "-- \(parts[1])" : ""
      return """
        wormhole \(parts[0]) --ready-fd 7 \(tail) 7>gate >out 2>said & pid=$!
        test "$(wc -c <gate)" = 1 || { echo '\(command)'; cat said; }
        kill $pid 2>said; wait $pid 2>said
        """
    }
    let outcome = try Session().shell(
      """
      mkfifo gate; mkdir files; wormhole log append a 1 >out
      \(scripts.joined(separator: "\n"))
      wormhole listen a --ready-fd 99; echo $?
      """)
    #expect(outcome.output == "64\n", "\(outcome.errors)")
    #expect(outcome.errors.contains("cannot use descriptor 99 for --ready-fd: it is not open"))
    // Each of them has the option, and any further one needs it, too.
    let withOption = CommandDescription.root.paths().filter { path in
      path.last?.options.contains { $0.name == ArgumentDescription.readyDescriptor.name } == true
    }
    // An agent, of 'peer launch', needs a container on etcd; its own test waits until it listens.
    // A message and a file are received by one command.
    #expect(withOption.count == commands.count)
  }

  @Test("and to the service manager, whose socket the command does not get")
  func serviceManager() throws {
    let address = "@wormhole-test-\(UInt64.random(in: .min ... .max))"
    let receiver = try DatagramReceiver(at: address)
    let outcome = try Session().shell(
      """
      export NOTIFY_SOCKET='\(address)'
      wormhole send a 1
      wormhole listen a --current --count 1 -- sh -c 'echo ${NOTIFY_SOCKET-none}'
      NOTIFY_SOCKET=@absent-socket wormhole listen a --current --count 1
      """)
    #expect(outcome.output == "none\n1\n", "\(outcome.errors)")
    #expect(try receiver.next(until: .now) == "READY=1")
    #expect(try receiver.next(until: .now) == nil)
    #expect(
      outcome.errors.contains("cannot notify the service manager (NOTIFY_SOCKET) that it is ready"))
  }

  private static let units = Checkout.path("Sources/Workshop/Packaging/systemd")

  @Test("The examples for systemd are correct, and call the program as it is called")
  func examples() throws {
    let names = try FileManager.default.contentsOfDirectory(atPath: Self.units).sorted()
    #expect(names.count >= 5)
    for name in names where name.hasSuffix(".service") {
      let text = try String(contentsOfFile: Self.units + "/" + name, encoding: .utf8)
      let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("ExecStart=") })
      let words = line.split(separator: " ").map(String.init)
      #expect(words.first == "ExecStart=/usr/bin/wormholectl")
      #expect(Invocations().refusal(Array(words.dropFirst())) == nil, "\(line)")
      // A program that passes SIGTERM on ends with its command's status, although it was asked to end.
      if ["receive", "run"].contains(where: words.contains) {
        #expect(text.contains("\nSuccessExitStatus=143\n"), "\(name)")
      }
      // A unit that counts as started when it is ready calls a command that says so.
      guard text.contains("Type=notify") else { continue }
      guard case .run(let command, _) = try Invocations().parse(Array(words.dropFirst())) else {
        Issue.record("\(line) runs nothing")
        continue
      }
      #expect(command.options.contains { $0.name == "ready-fd" }, "\(line)")
    }
    let outcome = try Session().shell(
      """
      command -v systemd-analyze >"$T/null" || { echo missing; exit; }
      mkdir -m 700 units bin; ln -s "$(command -v wormhole)" bin/wormholectl
      # Other units have sockets in it, so its path is short.
      run=$(mktemp -d -p /tmp); trap 'rm -rf "$run"' EXIT
      for unit in '\(Self.units)'/*; do
        sed "s|/usr/bin/wormholectl|$T/bin/wormholectl|" "$unit" >"units/${unit##*/}"
      done
      XDG_RUNTIME_DIR=$run systemd-analyze --user --man=no verify "$T/units/"* 2>&1
      """)
    if outcome.output == "missing\n" { print("skipped: systemd-analyze is not installed") }
    #expect(["", "missing\n"].contains(outcome.output) && outcome.status == 0, "\(outcome)")
  }
}
