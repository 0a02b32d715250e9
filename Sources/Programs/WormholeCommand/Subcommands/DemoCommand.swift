import Wormhole
import WormholeSystem
import WormholeTerminals

extension CommandDescription {
  static let demo = CommandDescription(
    name: "demo",
    abstract: "Show processes that work together, in a container of their own.",
    discussion: """
      One is suspended in the middle of a change, another is killed, and neither blocks the others. \
      The exit status is 0 if every step goes as it should.
      """,
    needsContainer: false
  ) { _, environment in
    let directory = "\(environment.temporaryDirectory)/wormhole-demo-\(Nonce.next())"
    try reporting(cannot: "make \(directory)", makeDirectory(directory))
    defer { remove(directory, environment) }
    let interruption = try Interruption()
    let stage = Stage(
      hasColour: Palette.wanted(isTerminal: environment.isTerminal, variable: environment.variable)
        == .colours
    ) { try environment.print(line: $0) }
    try stage.show("wormhole demo: processes that share a directory, and nothing else")
    var failures = 0
    let program = try Program.executablePath()
    let name = String(program.reversed().prefix { $0 != "/" }.reversed())
    for step in steps where !interruption.isRequested {
      try stage.title(step.title)
      let script = step.script.replacing("wormhole ", with: name + " ")
      for line in script.split(separator: "\n") { try stage.show("   $ \(line)") }
      let start = ContinuousClock.now
      let output = try printed(by: script, in: directory, environment, interruption)
      let duration = ContinuousClock.now - start
      for line in output.split(separator: "\n") { try stage.show("   \(line)") }
      try stage.explain(step.explanation)
      try stage.check(step.promise, output == step.output, took: duration)
      if output != step.output { failures += 1 }
    }
    if failures > 0 || interruption.isRequested { throw ExitStatus.no }
  }
}

/// The steps. The shell runs the scripts as they are shown, so these lines work in any terminal.
private let steps:
  [(title: String, script: String, output: String, explanation: String, promise: String)] = [
    (
      title: "1. A message goes from one process to another",
      script: """
      wormhole listen tickets --current --count 1 --timeout 5 &
      wormhole send tickets 0
      wait
      """,
      output: "0",
      explanation: "There is no server and no socket: one process replaced a file in one step, "
        + "and the kernel notified the other.",
      promise: "a message reaches another process without a server"
    ),
    (
      title: "2. A process is suspended in the middle of a change",
      script: """
      wormhole update tickets -- sh -c '
        if [ $WORMHOLE_ATTEMPT = 1 ]; then
          kill -STOP $PPID                # suspends this update
          wormhole send seen "$(wormhole read tickets)"
          wormhole update tickets -- sh -c "read n; echo \\$((n + 1))"
          kill -CONT $PPID
        fi
        read n; echo $((n + 1))'
      wormhole read seen; wormhole read tickets
      """,
      output: "0\n2",
      explanation: "A reader takes no lock, and saw 0. The second update saw in /proc that the "
        + "first is stopped, and took its lease over after 50 ms; behind flock(2) it would wait for "
        + "ever. When the first was continued, it could not publish, and ran its command again on "
        + "the latest value. Both tickets are sold.",
      promise: "a suspended process blocks nobody, and no change is lost"
    ),
    (
      title: "3. A process is killed in the middle of a change",
      script: """
      wormhole update tickets -- sh -c 'kill -KILL $PPID; echo 9'
      wormhole update tickets -- sh -c 'read n; echo $((n + 1))'
      wormhole read tickets
      """,
      output: "3",
      explanation: "The kernel releases the lease of a dead process, and none of its change was "
        + "visible.",
      promise: "a killed process blocks nobody, and leaves nothing half done"
    ),
    (
      title: "4. A message waits for a process that does not run yet",
      script: """
      wormhole peer send watch '"two seats"' >/dev/null
      wormhole peer receive watch --count 1 --timeout 5
      """,
      output: #""two seats""#,
      explanation: "A queue keeps each message until its receiver has handled it.",
      promise: "a queued message is delivered when its receiver comes"
    ),
    (
      title: "5. Nothing is left behind",
      script: #"wormhole doctor --sweep --json | grep -c '"leftover"'"#,
      output: "0",
      explanation: "A sweep removes what the killed process left; the next change would, too.",
      promise: "a sweep leaves nothing of a dead process"
    ),
  ]

/// - Returns: the script's standard output. Standard error is dropped, because each shell reports the
///   killed process in its own words.
private func printed(
  by script: String, in directory: String, _ environment: CommandEnvironment,
  _ interruption: Interruption
) throws -> String {
  let program = try Program.executablePath()
  let programs = program.prefix(upTo: program.lastIndex(of: "/") ?? program.startIndex)
  let shell = ExternalCommand(words: [
    "sh", "-c", "cd \(directory.quotedForShell); exec 2>/dev/null\n\(script)",
  ])
  let outcome = try shell.run(
    input: [],
    variables: [
      "PATH": "\(programs):\(environment.variable("PATH") ?? "")",
      ContainerSelection.directoryVariable: directory, ContainerSelection.groupVariable: "",
    ], collectsOutput: true, interruption: interruption)
  let lines = String(decoding: outcome.output, as: UTF8.self).split(separator: "\n")
  return lines.joined(separator: "\n")
}

private func remove(_ directory: String, _ environment: CommandEnvironment) {
  do { try removeTree(directory) } catch {
    environment.report("\(directory) is left: \(error)")
  }
}
