import FoundationEssentials
import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeSystem
import WormholeToolkit

/// A delivery that this process has received, to be settled when it is handled: an entry, or a message
/// to a peer. Most of its members are those of `PeerDelivery`.
protocol HandledDelivery {
  associatedtype ID: CustomStringConvertible
  var id: ID { get }
  var value: PropertyListValue { get }
  var sender: String { get }
  var sent: Date { get }
  var isRedelivery: Bool { get }
  var attempt: Int { get }
  /// The object of a sentence.
  var title: String { get }
  /// The value with the details of its sending.
  var envelope: JSONObject { get }

  /// The variables in the command's environment besides those of all deliveries.
  func variables(receiver: String) -> [String: String]

  /// The command that sends it again once it has failed.
  func retryCommand(receiver: String) -> String

  func acknowledge() throws
  func fail(_ reason: String, isKept: Bool) throws
  func retry(after pause: Duration, because reason: String) throws
  func giveBack() throws
}

extension ArgumentDescription {
  static let retries = value(
    "retries", .unsigned, named: "n", help: "Retry up to this many times if the command fails.")

  static let backoff = value(
    "backoff", .duration, standard: "1", help: "The pause before the first retry.")

  /// - Parameter noun: the delivery: "a message".
  static func failStatus(_ noun: String) -> ArgumentDescription {
    value(
      "fail-status", .count, named: "status",
      help: "Keep \(noun) as failed if the command ends so: no retry.")
  }
}

extension ParsedArguments {
  /// The attempts that `--retries` allows; nil for any number.
  var attempts: Int? { unsigned("retries").map { Int(min($0, UInt64(Int32.max))) + 1 } }

  /// Whether one delivery after another is handled, until a signal or until none is left.
  var takesAll: Bool {
    has("follow") || has("drain") || (has("run") && !isGiven("count"))
  }

  /// - Parameter noun: the delivery: "a message".
  func problemWithoutCommand(_ noun: String) -> String? {
    guard tail == nil, !has("run"), let option = ["retries", "fail-status"].first(where: isGiven)
    else {
      return nil
    }
    return "--\(option) needs a command: \(noun) that was printed is not delivered again"
  }
}

/// The process that replaced this one and now has the delivery; nil for another error.
private func successor(_ error: any Error) -> String? {
  guard let error = error as? WormholeError, [.leaseLost, .replaced].contains(error.code)
  else { return nil }
  return error.holder.map { "\($0)" } ?? "another process"
}

/// Whether the container could not be reached for the moment.
private func isUnreachable(_ error: any Error) -> Bool {
  [.clusterUnreachable, .outcomeUnknown].contains((error as? WormholeError)?.code)
}

/// Prints a delivery, or gives it to a command, and settles it.
struct DeliveryHandler {
  let arguments: ParsedArguments
  /// The name at which it was received.
  let receiver: String
  let interruption: Interruption
  /// The end of the time in which a delivery is printed.
  let deadline: ContinuousClock.Instant
  /// The descriptor that the command inherits: as long as it is open, the delivery is this receiver's.
  var inherited: () -> Int32? = { nil }
  /// With it a delivery is a `Job`, which is run, and its result is kept there.
  var results: JobResults?
  let environment: CommandEnvironment

  /// Handles a delivery, and acknowledges it.
  ///
  /// - Returns: the status of an unsuccessful end; nil if it was given back, or lost.
  /// - Throws: if it is to be delivered again, to the next receiver.
  func handle(_ delivery: some HandledDelivery) throws -> ExitStatus? {
    do {
      return try settle(delivery)
    } catch {
      guard let successor = successor(error) else { throw error }
      environment.report(
        "\(delivery.title) was lost to \(successor), because this process was stopped or the "
          + "container was removed; it is delivered again")
      return nil
    }
  }

  private func settle(_ delivery: some HandledDelivery) throws -> ExitStatus? {
    if let results { return try runJob(delivery, keepingItsResultIn: results) }
    let hasDetails = arguments.has("details")
    let bytes: [UInt8]
    do {
      let content: any Encodable = hasDetails ? delivery.envelope : delivery.value
      bytes = try arguments.outputFormat.bytes(content, of: delivery.title)
    } catch let error as CommandError {
      // Another form, or a command, can take it.
      return try refuse(delivery, "\(error)", because: error.reason, .badData)
    }
    guard let command = try arguments.command() else {
      if delivery.isRedelivery, !hasDetails {
        environment.report("\(delivery.title) was delivered before, and perhaps handled")
      }
      // A delivery that cannot be written is delivered again.
      do {
        try environment.print(bytes, interruption, until: deadline)
      } catch let error as CommandError {
        throw error.adding("\(delivery.title) is delivered again to the next receiver")
      }
      try acknowledge(delivery)
      return .done
    }
    return try conclude(delivery, run(command, input: bytes, for: delivery))
  }

  /// Runs the command that an entry is, and keeps its result.
  private func runJob(
    _ delivery: some HandledDelivery, keepingItsResultIn results: JobResults
  ) throws -> ExitStatus? {
    guard let job = Job(delivery.value) else {
      let reason = "it is not a command, as 'queue put -- COMMAND' stores one"
      return try refuse(
        delivery, "cannot run \(delivery.title): \(reason)", because: reason, .badData)
    }
    let began = Date()
    var end: CommandEnd
    do {
      let command = try job.command(container: arguments.containerVariables())
      end = try run(command, for: delivery, keepingLast: JobResults.mostOutput)
    } catch let error as CommandError where !error.isOwn {
      // It is the job's fault: this process continues with the next one.
      end = CommandEnd(status: error.status, failure: "\(error)")
    }
    // What is given back was not attempted.
    if end.failure == nil || !interruption.isRequested {
      let result = JobResult(
        id: "\(delivery.id)", attempt: delivery.attempt, job: job, began: began, ended: Date(),
        status: end.status.rawValue, reason: end.failure, output: end.output)
      do {
        try results.add(result)
      } catch {
        environment.report("the result of \(delivery.title) is not kept: \(sentence(of: error))")
      }
    }
    return try conclude(delivery, end)
  }

  /// Runs a command for a delivery to its end, or to its limit.
  ///
  /// - Parameter mostOutput: with it, what it prints is collected; otherwise it has our output.
  private func run(
    _ command: ExternalCommand, input: [UInt8] = [], for delivery: some HandledDelivery,
    keepingLast mostOutput: Int? = nil
  ) throws -> CommandEnd {
    let limit = arguments.duration("limit")
    let end = limit.map { ContinuousClock.now + $0 }
    let (termination, output, isLate) = try environment.withoutTimeLimit {
      try command.run(
        input: input, variables: variables(of: delivery), collectsOutput: mostOutput != nil,
        keepingLast: mostOutput, interruption: interruption, work: .tree, inheriting: inherited(),
        until: end)
    }
    var status = ExitStatus(termination)
    var ending = command.failure(termination)
    if let limit, isLate, !interruption.isRequested {
      // Whatever status it made of the signal.
      ending =
        (ending ?? "\(command.words[0]) was asked to end")
        + ", because it had run for \(limit.shortText)"
      status = .deadline
    }
    return CommandEnd(
      status: status, failure: ending, output: output,
      isFinal: status != .deadline && termination.isExit(arguments.count("fail-status")))
  }

  /// Settles a delivery whose command has ended.
  private func conclude(
    _ delivery: some HandledDelivery, _ end: CommandEnd
  ) throws -> ExitStatus? {
    guard let failure = end.failure else {
      try acknowledge(delivery)
      return .done
    }
    if interruption.isRequested {
      try delivery.giveBack()
      environment.report("\(delivery.title) goes back, because this process ends: \(failure)")
      // An orderly end for those that continue until a signal.
      guard arguments.takesAll else { throw interruption.endStatus }
      return nil
    }
    let sentence = "\(failure), given \(delivery.title)"
    if end.isFinal { return try refuse(delivery, sentence, because: failure, end.status) }
    // If another process has taken the delivery over, and killed the command first, this fails.
    if let attempts = arguments.attempts ?? (results == nil ? nil : 1) {
      return try retry(delivery, sentence, because: failure, atMost: attempts) ? nil : end.status
    }
    // If another process has taken it over, and killed the command first, this fails.
    try delivery.retry(after: .zero, because: failure)
    throw CommandError(
      cannot: "handle \(delivery.title)",
      because: "\(failure); it is delivered again to the next receiver", status: end.status)
  }

  /// Acknowledges it as soon as the container can be reached: it is handled, and would otherwise be
  /// handled again. Tries until a signal; then it is delivered again.
  private func acknowledge(_ delivery: some HandledDelivery) throws {
    var hasReported = false
    while true {
      do {
        return try delivery.acknowledge()
      } catch {
        guard isUnreachable(error), !interruption.isRequested else { throw error }
        if !hasReported { environment.report("\(error); \(delivery.title) is acknowledged later") }
        hasReported = true
        guard try interruption.wait(for: { pauseThread(.seconds(1)) }) != nil else { throw error }
      }
    }
  }

  private func variables(of delivery: some HandledDelivery) -> [String: String] {
    var variables = CommandVariable.common(
      identifier: receiver, time: delivery.sent, sender: delivery.sender)
    variables[CommandVariable.redelivery] = delivery.isRedelivery ? "1" : "0"
    variables[CommandVariable.attempt] = "\(delivery.attempt)"
    return variables.merging(delivery.variables(receiver: receiver)) { $1 }
  }

  /// - Returns: false if it has failed instead.
  private func retry(
    _ delivery: some HandledDelivery, _ sentence: String, because reason: String,
    atMost attempts: Int
  ) throws -> Bool {
    let retries = attempts - delivery.attempt
    guard retries > 0 else {
      _ = try refuse(delivery, sentence, because: reason, .no)
      return false
    }
    let pause = PlainEntry.pause(
      after: delivery.attempt, backoff: arguments.duration("backoff") ?? .zero)
    try delivery.retry(after: pause, because: reason)
    let rest = retries == 1 ? "one more retry" : "up to \(retries) more retries"
    environment.report(sentence + "; \(rest), the next in \(pause.shortText)")
    return true
  }

  private func refuse(
    _ delivery: some HandledDelivery, _ sentence: String, because reason: String,
    _ status: ExitStatus
  ) throws -> ExitStatus {
    try delivery.fail(reason, isKept: true)
    let command = delivery.retryCommand(receiver: receiver)
    environment.report(sentence + "; it is kept: '\(command)' sends it again")
    return status
  }
}

/// How a delivery's command has ended.
private struct CommandEnd {
  let status: ExitStatus
  /// Why that is a failure; nil if it is not one.
  let failure: String?
  var output: [UInt8] = []
  /// Whether no further attempt is to be made.
  var isFinal = false
}

extension Termination {
  /// Whether the program ended with a status.
  fileprivate func isExit(_ status: Int?) -> Bool {
    status.map { self == .exited(Int32(clamping: $0)) } ?? false
  }
}
