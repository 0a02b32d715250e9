import SystemCalls

struct DemoCommand: Subcommand {
  static let description = CommandDescription(
    name: "demo",
    abstract: "Show processes that talk to each other, in a container of their own.",
    discussion: """
      One is suspended in the middle of a change, another is killed, and neither blocks anybody. \
      The exit status is 0 if every step went as it should.
      """,
    needsContainer: false)

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let base = environment.variable("TMPDIR").flatMap { $0.isEmpty ? nil : $0 } ?? "/tmp"
    let directory = "\(base)/wormhole-demo-" + String(UInt64.random(in: 0 ... .max), radix: 16)
    do throws(Errno) {
      try makeDirectory(directory)
    } catch {
      throw CommandError(
        verb: "make", object: directory, reason: "\(error)", status: .inputOutput)
    }
    defer { remove(directory, environment) }
    do {
      return try Demo(environment, directory: directory).run() ? .done : .no
    } catch let error as LineProcess.Failure {
      throw CommandError(
        verb: "finish", object: "the demonstration", reason: error.description, status: .no)
    }
  }

  private func remove(_ directory: String, _ environment: CommandEnvironment) {
    do throws(Errno) {
      let remove = try ChildProcess("rm", ["-rf", directory])
      if try remove.wait(until: .now + .seconds(5)) == .exited(0) { return }
      environment.tell("\(directory) is left")
    } catch {
      environment.tell("\(directory) is left: \(error)")
    }
  }
}
