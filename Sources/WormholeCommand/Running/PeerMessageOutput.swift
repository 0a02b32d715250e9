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
  /// After so many deliveries a message has failed; nil where none is given back.
  private let maximumDeliveries: Int?
  private let backoff: Duration
  private let interruption: Interruption
  private let environment: CommandEnvironment

  init(
    _ arguments: ParsedArguments, _ interruption: Interruption, _ environment: CommandEnvironment
  ) {
    name = arguments.requiredText("name")
    format = arguments.outputFormat
    hasEnvelope = arguments.has("envelope")
    command = arguments.tail.map(ExternalCommand.init)
    maximumDeliveries = arguments.maximumDeliveries
    backoff = arguments.seconds("backoff") ?? .seconds(1)
    self.interruption = interruption
    self.environment = environment
  }

  /// Puts a message out, and acknowledges it.
  ///
  /// - Returns: how it went: `.badData` when it was refused for good; nil when it was given back.
  /// - Throws: when it is to be delivered again, to the next receiver.
  func put(_ message: PeerMessage) throws -> ExitStatus? {
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
    if let maximumDeliveries, !interruption.isRequested {
      let isGivenBack = try giveBack(message, failure, maximumDeliveries)
      return isGivenBack ? nil : ExitStatus(termination)
    }
    throw CommandError(
      verb: "handle", object: message.title,
      reason: "\(failure); it is delivered again to the next receiver",
      status: ExitStatus(termination))
  }

  /// - Returns: false when it has failed instead.
  private func giveBack(
    _ message: PeerMessage, _ failure: String, _ maximumDeliveries: Int
  ) throws -> Bool {
    let sentence = "\(failure), given \(message.title)"
    let retries = maximumDeliveries - message.deliveries
    guard retries > 0 else {
      try message.fail(failure, isKept: true)
      environment.tell(
        sentence + "; it is kept: 'wormhole peer retry \(message.id)' sends it again")
      return false
    }
    // Doubled with each delivery, up to an hour.
    let pause = min(backoff * (1 << min(message.deliveries - 1, 20)), .seconds(3_600))
    try message.release(after: pause)
    let times = retries == 1 ? "once more" : "up to \(retries) times more"
    environment.tell(sentence + "; it is delivered \(times), next in \(pause.shortText)")
    return true
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
      "deliveries": .integer(Int64(deliveries)), "id": .string(id), "message": value,
      "redelivery": .boolean(isRedelivery), "sender": .string(sender), "sent": .date(sent),
    ]
  }

  fileprivate func variables(name: String) -> [String] {
    [
      PeerVariable.assignment(PeerVariable.name, name),
      PeerVariable.assignment(PeerVariable.sender, sender),
      PeerVariable.assignment(PeerVariable.transfer, id),
      PeerVariable.assignment(PeerVariable.redelivery, isRedelivery ? "1" : "0"),
      PeerVariable.assignment(PeerVariable.deliveries, "\(deliveries)"),
    ]
  }
}

extension Duration {
  /// `0.5 s`, `8 s`.
  fileprivate var shortText: String {
    let seconds = self / .seconds(1)
    return seconds == seconds.rounded() ? "\(Int(seconds)) s" : "\(seconds) s"
  }
}
