import FoundationEssentials
import PeerConnectivity
import PropertyLists
import SystemCalls

/// Where `peer receive` puts messages: on standard output, or into a command.
struct PeerMessageOutput {
  private let name: String
  private let format: OutputFormat
  private let hasEnvelope: Bool
  private let command: ExternalCommand?
  private let interruption: Interruption
  private let environment: CommandEnvironment

  init(
    _ arguments: ParsedArguments, _ interruption: Interruption, _ environment: CommandEnvironment
  ) {
    name = arguments.requiredText("name")
    format = arguments.outputFormat
    hasEnvelope = arguments.has("envelope")
    command = arguments.tail.map(ExternalCommand.init)
    self.interruption = interruption
    self.environment = environment
  }

  /// Puts a message out, and acknowledges it.
  ///
  /// - Returns: `.badData` when it was refused for good.
  /// - Throws: when it is to be delivered again.
  func put(_ message: PeerMessage) throws -> ExitStatus {
    let bytes: [UInt8]
    do {
      bytes = try format.bytes(hasEnvelope ? message.envelope : message.value, of: message.title)
    } catch let error as CommandError {
      // It would never get any better.
      return try refuse(message, "\(error)", because: error.reason)
    }
    guard let command else {
      if message.isRedelivery, !hasEnvelope {
        environment.tell("\(message.title) was delivered before, and perhaps handled")
      }
      // One whose line cannot be written is delivered again.
      try environment.print(bytes)
      try message.acknowledge()
      return .done
    }
    let termination = try interruption.run(
      command, input: bytes, variables: message.variables(name: name)
    ).termination
    guard let failure = command.failure(termination) else {
      try message.acknowledge()
      return .done
    }
    if termination == .exited(ExitStatus.badData.rawValue) {
      return try refuse(message, "\(failure), given \(message.title)", because: failure)
    }
    throw CommandError(
      verb: "handle", object: message.title,
      reason: "\(failure); it is delivered again to whoever receives next",
      status: ExitStatus(termination))
  }

  private func refuse(
    _ message: PeerMessage, _ sentence: String, because reason: String
  ) throws -> ExitStatus {
    try message.fail(reason)
    environment.tell(sentence + "; it is not delivered again")
    return .badData
  }
}

extension PeerMessage {
  /// As the object of a sentence.
  fileprivate var title: String { "the message \(id) from \(sender.quoted)" }

  /// Keys are only ever added.
  fileprivate var envelope: PropertyListValue {
    [
      "id": .string(id), "message": value, "redelivery": .boolean(isRedelivery),
      "sender": .string(sender), "sent": .date(sent),
    ]
  }

  fileprivate func variables(name: String) -> [String] {
    [
      PeerVariable.assignment(PeerVariable.name, name),
      PeerVariable.assignment(PeerVariable.sender, sender),
      PeerVariable.assignment(PeerVariable.transfer, id),
      PeerVariable.assignment(PeerVariable.redelivery, isRedelivery ? "1" : "0"),
    ]
  }
}
