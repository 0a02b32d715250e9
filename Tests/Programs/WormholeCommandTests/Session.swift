import Testing
import Wormhole
import WormholeEtcd
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

/// A shell, a container and the built program: the surroundings of a user. On etcd the container's
/// directory stays empty.
struct Session {
  struct Outcome {
    let status: Int32
    let output: String
    let errors: String
  }

  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  private let directory: TemporaryDirectory
  var container: String { directory.path + "/container" }
  var listing: String { directory.listing }

  init() throws {
    directory = try TemporaryDirectory()
    try makeDirectory(directory.path + "/container")
  }

  /// Functions for scripts: `start` begins a listening command and returns when it says that it
  /// listens, `finish` waits for its end and has its status. `says` returns when texts are in a file,
  /// which need not exist before; `hears` when lines are in `$T/heard`. `holds` begins any command and
  /// returns when that says `in` to `$T/in`; `stopped` and `gone` wait until a process is. Each look starts
  /// a program, so they look often only at first.
  private static let functions = """
    cd "$T" || exit 70
    start() {
      mkfifo "$T/gate" && { wormhole "$@" 2>"$T/gate" & } && pid=$!
      exec 3<"$T/gate"
      read -r word <&3 && test "$word" = listening
    }
    finish() {
      wait "$pid"; ended=$?; cat <&3 >&2; rm "$T/gate"; return $ended
    }
    pause() { sleep "$pause"; pause=0.05; }
    says() {
      file=$1; shift
      for text; do pause=0.01; until grep -qsF -- "$text" "$file"; do pause; done; done
    }
    hears() { for line; do pause=0.01; until grep -qxF -- "$line" "$T/heard"; do pause; done; done; }
    holds() {
      mkfifo "$T/in" && { "$@" & } && pid=$!
      read -r word <"$T/in" && rm "$T/in" && test "$word" = in
    }
    gone() {
      pause=0.01
      while grep -q 'State:.[^ZX]' "/proc/$1/status" 2>"$T/null"; do pause; done
    }
    # Or its stop is pending (ShdPnd, bit 18) because it waits for a stopped child (vfork).
    stopped() {
      pause=0.01
      until grep -qE '^State:.T|^ShdPnd:.*[4-7c-f]....$' "/proc/$1/status"; do pause; done
    }

    """

  /// Runs a script with `wormhole` in its PATH, the container in `$C` and a temporary directory in
  /// `$T`, in which it runs, so that a failing script leaves nothing elsewhere.
  func shell(
    _ script: String, within limit: Duration = testPatience, with wrapper: [String] = []
  ) throws -> Outcome {
    let number = UInt64.random(in: .min ... .max)
    let (output, errors) = ("\(directory.path)/out-\(number)", "\(directory.path)/err-\(number)")
    let location = try TestEngine.current.location(of: container)?.description ?? container
    let variables = [
      "PATH=\(try BuiltProgram.searchPath()):\(Program.environment("PATH") ?? "/usr/bin:/bin")",
      "C=\(container)",
      "T=\(directory.path)", "WORMHOLE_CONTAINER=\(location)", "HOME=\(directory.path)",
      "LC_ALL=C.UTF-8",
    ]
    // timeout(1) ends everything that a script has started, not only the shell. Without a terminal: a script that
    // stops a process means no Ctrl-Z.
    let seconds = String(limit.components.seconds)
    let words = ["setsid", "timeout", "-s", "KILL", seconds] + wrapper
    let ended = try run(
      words + ["sh", "-c", Self.functions + script], variables, output, errors, within: limit)
    guard case .exited(let status) = ended, status != 128 + Signal.kill.rawValue else {
      let heard = ["heard", "said"].map { directory.path + "/" + $0 }
      let texts = try heard.filter { try exists($0, at: Directory.current) }.map {
        "\($0):\n\(try text($0))"
      }
      throw Failure(
        description: "\(script): \(ended), limit \(limit)\n\(try text(errors))\n"
          + texts.joined(separator: "\n"))
    }
    return Outcome(status: status, output: try text(output), errors: try text(errors))
  }

  /// Whether a script succeeds here; if not, says what is missing.
  static func succeeds(
    _ script: String, with wrapper: [String] = [], missing: String
  ) -> Bool {
    do {
      let trial = try Session().shell(script, with: wrapper)
      if trial.status != 0 { print("skipped: no \(missing) here: \(trial.errors)") }
      return trial.status == 0
    } catch {
      print("skipped: no \(missing) here: \(error)")
      return false
    }
  }

  private func run(
    _ words: [String], _ variables: [String], _ output: String, _ errors: String,
    within limit: Duration
  ) throws -> Termination {
    let out = try Self.make(output)
    let err = try Self.make(errors)
    let input = try FileDescriptor.open("/dev/null", .readOnly)
    let child = try ChildProcess(
      words[0], Array(words.dropFirst()), environment: variables, input: input.rawValue,
      output: out.rawValue, errors: err.rawValue)
    guard let ended = try child.wait(until: .now + limit + .seconds(60)) else {
      throw Failure(description: "timeout(1) did not end \(words)")
    }
    return ended
  }

  private static func make(_ path: String) throws -> FileDescriptor {
    try FileDescriptor.open(path, [.writeOnly, .create, .truncate])
  }

  private func text(_ path: String) throws -> String {
    let file = try FileDescriptor.open(path, .readOnly)
    return String(
      decoding: try file.readToEnd(expectedBytes: 0, maximumBytes: 16 << 20), as: UTF8.self)
  }

  /// Writes bytes in a value's place, as a foreign program would.
  func plant(_ bytes: [UInt8], at path: String) throws {
    let file = try FileDescriptor.open(
      container + "/" + path, [.writeOnly, .create, .truncate, .nonBlocking])
    try file.writeAll(bytes)
  }
}
