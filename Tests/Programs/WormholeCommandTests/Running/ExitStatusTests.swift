import FoundationEssentials
import Synchronization
import Testing
import Wormhole
import WormholeEtcd
import WormholeFiles
import WormholePeers
import WormholePropertyLists
import WormholeSystem
import WormholeTerminals
import WormholeTestSupport
import WormholeWorkshop

@testable import WormholeCommand

/// Swift Testing also has a type of this name.
private typealias ExitStatus = WormholeCommand.ExitStatus

@Suite("An error of the container decides the exit status", .blocking)
struct ExitStatusTests {
  @Test("A deadline that passes while the lease is held is status 124, and names the holder")
  func deadline() throws {
    let directory = try TemporaryDirectory()
    let value = try directory.container().value("seats")
    // Given: this process has the lease. When: it wants the lease again, without waiting.
    let error = try value.update { _ in
      #expect(throws: WormholeError.self) { try value.replace(with: 1, until: .now) }
    }
    // Then:
    #expect(error.map { ExitStatus(of: $0) } == .deadline)
    #expect(error?.holder?.state == .running)
    #expect(error?.description.contains("with its lease held for ") == true)
  }

  // It used to be 74 for a file that a command reads or writes, and for 'destroy'.
  @Test(
    "What the kernel denies is status 77, in a container or beside it",
    arguments: [Errno.accessDenied, .notPermitted, .readOnlyFileSystem])
  func denied(error: Errno) throws {
    #expect(CommandError(cannot: "read x", because: error).status == .permission)
    let directory = try TemporaryDirectory()
    _ = try directory.container()
    let removal = #expect(throws: TreeError.self) {
      try Faults.$plan.withValue(Faults.Plan { _, _ in .fail(error) }) {
        try TreeRemoval().remove(FileName(directory.path), at: Directory.current)
      }
    }
    #expect(removal.map { ExitStatus(of: $0) } == .permission)
    #expect(CommandError(cannot: "read x", because: Errno.noSuchFile).status == .inputOutput)
  }

  // These two lost the number of the kernel's error, and ended with 74.
  @Test("So it is for a file that is to be sent, and for a presenter")
  func deniedBetweenProcesses() throws {
    let directory = try TemporaryDirectory()
    let peer = try PeerSession("a", in: directory.container())
    let file = URL(filePath: directory.path + "/file")
    let presenter = try PrintingPresenter(file.path, PresenterEvent.backlog())
    let denying = Faults.Plan { _, _ in .fail(.accessDenied) }
    let sending = #expect(throws: WormholeError.self) {
      try Faults.$plan.withValue(denying) { try peer.transfer(fileAt: file, to: "b") }
    }
    #expect(sending.map { ExitStatus(of: $0) } == .permission, "\(String(describing: sending))")
    let presenting = #expect(throws: PresenterError.self) {
      try Faults.$plan.withValue(denying) { try FileCoordinator.addFilePresenter(presenter) }
    }
    #expect(presenting.map { ExitStatus(of: $0) } == .permission)
    let missing = #expect(throws: WormholeError.self) { try peer.transfer(fileAt: file, to: "b") }
    #expect(missing.map { ExitStatus(of: $0) } == .inputOutput)
  }

  // The program found no arguments without it; one that was linked statically aborted.
  @Test("Without /proc the version and the help are printed, and all else says what is missing")
  func noProcessTable() throws {
    let outcome = try Session().shell(
      """
      test "$(id -u)" = 0 || map=--map-root-user
      unshare $map --mount sh -c 'mount -t tmpfs none /proc
        wormhole --version | wc -l; wormhole ls --help | grep -c USAGE; wormhole ls; echo $?'
      """)
    #expect(outcome.output == "1\n1\n74\n", "\(outcome)")
    #expect(
      outcome.errors.contains("ls: /proc is missing"), "\(outcome)")
  }

  /// Runs a command in this process.
  private func run(_ endpoint: String, _ words: [String]) -> (status: ExitStatus, errors: String) {
    let errors = Mutex<[UInt8]>([])
    let environment = CommandEnvironment(
      variable: { _ in nil }, writeStandardOutput: { _ in },
      writeStandardError: { text in errors.withLock { $0 += text } })
    let place = endpoint.replacing("http:", with: "etcd:") + "/x"
    let status = WormholeProgram(root: .root, environment: environment).run(
      (["--container", place] + words).map { Array($0.utf8) })
    return (status, errors.withLock { String(decoding: $0, as: UTF8.self) })
  }

  @Test(
    "A deadline holds for opening, too: whether nobody listens or nobody answers, it is status 124",
    .waiting, .needsEtcd)
  func opening() throws {
    let silent = try EtcdNode()
    try silent.stop()
    for command in [
      ["update", "a", "--timeout", "1", "--", "true"], ["send", "a", "1", "--timeout", "1"],
      ["listen", "a", "--timeout", "1"],
    ] {
      for endpoint in [silent.endpoint, "http://127.0.0.1:\(try EtcdNode.freePort())"] {
        let (status, errors) = run(endpoint, command)
        #expect(status == .deadline, "\(command) \(errors)")
        #expect(errors.contains("cannot open the container"), "\(command) \(errors)")
      }
    }
    let port = try EtcdNode.freePort()
    let (status, errors) = run("http://127.0.0.1:\(port)", ["ls"])
    #expect(status == .outOfReach && errors.contains("it refused the connection"), "\(errors)")
  }

  // The status was 74 unless the scheme was unknown, too.
  @Test("A location that is wrongly written is a usage error")
  func location() {
    EtcdEngine.register()
    for endpoint in ["http://h:x", "http://[::1", "http://", "http://h]", "ftp://h"] {
      for command in [["ls"], ["send", "a", "1"], ["read", "a"]] {
        let (status, errors) = run(endpoint, command)
        #expect(status == .usage, "\(command) \(errors)")
      }
    }
  }

  @Test(
    "doctor names the members that do not answer, though the container cannot be opened", .needsEtcd
  )
  func members() throws {
    let port = try EtcdNode.freePort()
    let outcome = try Session().shell(
      "wormhole --container etcd://127.0.0.1:\(port)/x doctor; echo $?", within: .seconds(60))
    #expect(
      outcome.output.contains("A member does not answer: it refused the connection"), "\(outcome)")
    #expect(outcome.output.hasSuffix("\n1\n"), "\(outcome)")
  }

  @Test(
    "An etcd or a peer that does not answer is out of reach, and etcd late where there is a deadline"
  )
  func unreachable() {
    let silence = WormholeError(
      .clusterUnreachable, "read \"a\"", path: "", reason: "it does not answer")
    let between = WormholeError(any: silence, "receive messages")
    for error in [silence, between] as [any Error] {
      #expect(ExitStatus(of: error) == .outOfReach)
      #expect(ExitStatus(of: error, hasTimeout: true) == .deadline)
    }
    let peer = WormholeError(.unreachable, "ask", reason: "it is not there")
    #expect(ExitStatus(of: peer, hasTimeout: true) == .outOfReach)
  }

  @Test("Words for a shell survive the shell")
  func quoting() throws {
    for text in [
      "plain", "", "a b", "it's", "$(x)", "*", "ä", "-x", "a\nb", "a\n", "-\u{1B}[31m'%s\\\u{202E}",
    ] {
      let echoed = try ForeignProgram.run("sh", ["-c", "printf %s \(text.quotedForShell)"])
      #expect(echoed?.output == text)
    }
  }

  @Test("Colour is for terminals without NO_COLOR")
  func colour() throws {
    #expect(try shown(isTerminal: true, [:]).contains("\u{1B}[1m"))
    #expect(try !shown(isTerminal: true, ["NO_COLOR": "1"]).contains("\u{1B}"))
    #expect(try !shown(isTerminal: true, ["TERM": "dumb"]).contains("\u{1B}"))
    #expect(try !shown(isTerminal: false, [:]).contains("\u{1B}"))
  }

  @Test("What has failed or is stopped is red at a terminal")
  func marks() {
    let text = "jobs  1 waiting, 2 failed  process 7 (w), suspended\nfailed-jobs  failedly\n"
    func marked(isTerminal: Bool, _ variables: [String: String] = [:]) -> String {
      CommandEnvironment(
        variable: { variables[$0] }, writeStandardOutput: { _ in }, writeStandardError: { _ in },
        isTerminal: isTerminal
      ).marked(text)
    }
    let red = marked(isTerminal: true)
    #expect(red.contains("2 \u{1B}[31mfailed\u{1B}[0m") && red.contains("\u{1B}[31msuspended"))
    #expect(red.contains("failedly") && red.filter { $0 == "\u{1B}" }.count == 6)
    #expect(marked(isTerminal: true, ["NO_COLOR": "1"]) == text)
    #expect(marked(isTerminal: false) == text)
  }

  private func shown(isTerminal: Bool, _ variables: [String: String]) throws -> String {
    let lines = Output()
    let hasColour = Palette.wanted(isTerminal: isTerminal) { variables[$0] } == .colours
    try Stage(hasColour: hasColour) { line in lines.text.withLock { $0 += line } }.title("Title")
    return lines.text.withLock { $0 }
  }

  private final class Output: Sendable {
    let text = Mutex("")
  }
}
