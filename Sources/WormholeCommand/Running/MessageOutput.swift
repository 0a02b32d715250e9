import AppGroup
import PropertyLists
import SystemCalls

/// Where `listen` puts messages: on standard output, or into a command, one after the other.
struct MessageOutput {
  private let environment: CommandEnvironment
  private let format: OutputFormat
  private let command: ExternalCommand?
  private let namesIdentifier: Bool

  init(_ arguments: ParsedArguments, _ environment: CommandEnvironment) {
    self.environment = environment
    format = arguments.outputFormat
    command = arguments.tail.map(ExternalCommand.init)
    namesIdentifier = arguments.texts("identifier").count > 1
  }

  /// Puts out what arrives until there were enough messages or the deadline has passed.
  ///
  /// A message that was removed is no message, and one that cannot be read is said to be so; both
  /// do not count. A command that is running at the deadline is let finish.
  func deliver(
    _ arrivals: Arrivals<Snapshot>, _ identifiers: [String], count: Int,
    until deadline: ContinuousClock.Instant?
  ) throws -> ExitStatus {
    var status = ExitStatus.done
    var remaining = count
    while remaining > 0 {
      guard let arrival = arrivals.next(until: deadline) else { return .deadline }
      let message: PropertyListValue?
      do {
        message = try arrival.item.propertyList()
      } catch let error as AppGroupError {
        environment.tell(error)
        continue
      }
      guard let message else { continue }
      let ended = try put(message, identifiers[arrival.index])
      if ended != .done { status = ended }
      remaining -= 1
    }
    return status
  }

  /// - Returns: how the command ended.
  private func put(_ message: PropertyListValue, _ identifier: String) throws -> ExitStatus {
    let content: PropertyListValue =
      namesIdentifier ? ["identifier": .string(identifier), "message": message] : message
    let bytes: [UInt8]
    do {
      bytes = try format.bytes(content, of: identifier.quoted)
    } catch let error as CommandError {
      environment.tell(error)
      return .no
    }
    guard let command else {
      try environment.print(bytes)
      return .done
    }
    let termination = try command.run(input: bytes).termination
    if let failure = command.failure(termination) {
      environment.tell("\(failure), given \(identifier.quoted)")
    }
    return ExitStatus(termination)
  }
}

extension CommandEnvironment {
  func tellIfPolling(_ detection: Observation.Detection, _ identifier: String) {
    guard case .polling(let reason) = detection else { return }
    tell(
      "\(identifier.quoted) is looked at five times a second, for the kernel tells nothing: "
        + reason)
  }

  /// Everything on standard input. At a terminal a line says that it is waited for.
  func wholeStandardInput() throws -> [UInt8] {
    if isInputTerminal { tell("reading standard input from the terminal; Ctrl-D ends it") }
    do {
      return try readStandardInput()
    } catch let error as Errno where error == .fileTooLarge {
      throw CommandError(
        verb: "read", object: "standard input",
        reason: "it has more than \(Message.maximumTextBytes >> 20) MiB", status: .badData)
    } catch {
      throw CommandError(
        verb: "read", object: "standard input", reason: "\(error)", status: .inputOutput)
    }
  }
}
