import Foundation
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

/// The page "As a service": its programs are built and run, and stopped in the middle of a job.
@Suite("A service, as its page has it,", .blocking)
struct AsAServiceTests {
  private static let page = "Sources/Core/Wormhole/Wormhole.docc/AsAService.md"

  private func blocks(_ language: String) throws -> [String] {
    try Readme.blocks(ofPage: Self.page).filter { $0.language == language }.map(\.text)
  }

  /// ```
  /// test                         worker of four
  /// sends eight jobs
  ///                              begins with four
  /// SIGTERM
  ///                              ends these, begins no other, and ends with status 0
  /// ```
  @Test("in Swift ends its jobs when it gets SIGTERM, and takes no other")
  func swift() throws {
    let directory = try TemporaryDirectory()
    let outcome = try ReaderPackage(directory: directory.path)
      .build(blocks("swift")[0], as: "printer")
    try #require(outcome.isBuilt, "\(outcome.said)")
    let environment = Program.environment.filter { !$0.hasPrefix("XDG_DATA_HOME=") }
    let groups = directory.path + "/app-groups"
    for path in [groups, groups + "/group.com.example.print"] { try makeDirectory(path) }
    let queue = try SharedContainer(url: URL(filePath: groups + "/group.com.example.print"))
      .queue("jobs")
    let sender = try queue.sender("test")
    for number in 0..<8 { try sender.enqueue(PropertyListValue(number)) }
    // Swift buffers what it prints into a pipe.
    let worker = try LineProcess(
      "stdbuf", ["-oL", directory.path + "/printer"],
      environment: environment + ["XDG_DATA_HOME=\(directory.path)"])
    for _ in 0..<4 { #expect(try worker.line(until: soon).hasPrefix("printing")) }
    try worker.send(.terminate)
    #expect(try worker.wait(until: soon) == .exited(0))
    let left = try queue.outstanding()
    #expect(left.count == 4 && left.allSatisfy { $0.status == .stored })
    #expect(try queue.failures().isEmpty)
  }

  @Test("in Python answers each entry, and leaves what it has not answered")
  func python() throws {
    let program = try blocks("python")[0]
    let outcome = try Session().shell(
      """
      cat >"$T/worker.py" <<'END'
      \(program)
      END
      seq 3 | wormhole queue put jobs --lines >"$T/null"
      python3 "$T/worker.py" >"$T/heard" 2>"$T/said" & worker=$!
      hears 'printing 3 '; kill $worker; wait $worker
      wormhole queue put jobs 4 >"$T/null"
      wormhole queue take jobs; wormhole queue list jobs
      """)
    #expect(outcome.output == "4\n", "\(outcome)")
  }

  /// Each container has process numbers of its own, and both see the directory.
  @Test("in two containers shares a queue, also while one of them is paused")
  func containers() throws {
    let outcome = try Session().shell(
      """
      unshare -rpf --mount-proc true 2>/dev/null || { echo 3; exit; }
      seq 3 | wormhole queue put jobs --lines >"$T/null"
      mkfifo "$T/in"
      unshare -rpf --kill-child --mount-proc wormhole queue take jobs --follow -- \
        sh -c 'read -r n; echo $n >"$T/in"; exec sleep 60' & one=$!
      read -r n <"$T/in"; kill -STOP $(pgrep -P $one)
      unshare -rpf --mount-proc wormhole queue take jobs --count 2 -- sh -c 'cat >>"$T/heard"'
      wc -l <"$T/heard" | sed 's/2/3/'; kill -KILL $one
      """)
    #expect(outcome.output == "3\n", "\(outcome)")
  }

  @Test("has a unit for systemd whose command takes, and is known to this program")
  func unit() throws {
    let file = "Sources/Workshop/Packaging/systemd/wormhole-take.service"
    let unit = try String(contentsOf: Readme.root.appending(path: file), encoding: .utf8)
    for line in try blocks("ini")[0].split(separator: "\n") {
      #expect(unit.contains("\n\(line)\n"), "\(line)")
    }
    let start = try #require(unit.split(separator: "\n").first { $0.hasPrefix("ExecStart=") })
    let words = start.replacing("ExecStart=/usr/bin/wormholectl", with: "wormhole")
      .replacing("--follow", with: "--drain").replacing("/usr/local/bin/print", with: "cat")
    let outcome = try Session().shell(
      "seq 3 | wormhole queue put jobs --lines >\"$T/null\"; \(words) | sort")
    #expect(outcome.output == "1\n2\n3\n", "\(outcome)")
  }

  @Test("is tested in containers of one's own")
  func ownTests() throws {
    let directory = try TemporaryDirectory()
    let outcome = try ReaderPackage(directory: directory.path)
      .build(blocks("swift")[1], as: "tests", isWhole: false)
    #expect(outcome.isBuilt, "\(outcome.said)")
  }
}
