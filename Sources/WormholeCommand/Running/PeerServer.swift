import PeerConnectivity
import PropertyLists
import SystemCalls

/// Answers requests by running a command.
struct PeerServer {
  let name: String
  let command: ExternalCommand
  let interruption: Interruption
  let environment: CommandEnvironment

  /// Longer reasons are for a log.
  private static let maximumReasonCharacters = 1_000

  func answer(_ request: PeerRequest) throws {
    guard !request.isCancelled else { return }
    do {
      switch try reply(to: request) {
      case .success(let value): try request.reply(value)
      case .failure(let failure): try request.fail(failure.reason)
      }
    } catch let error as CommandError {
      environment.tell(error)
      try fail(request, "\(error)")
    } catch let error as PeerError {
      // The sender has ended, say: the next one is none the worse.
      environment.tell(error)
    }
  }

  private struct Failure: Error {
    let reason: String
  }

  private func reply(to request: PeerRequest) throws -> Result<PropertyListValue, Failure> {
    let unwanted = SharedDescriptor(try FileDescriptor.wakeUpCounter())
    request.onCancel {
      do {
        try unwanted.descriptor.raiseCounter()
      } catch {
        // Only a counter at its maximum cannot be raised, and that can be read already.
      }
    }
    let outcome = try interruption.run(
      command, input: try OutputFormat.json.bytes(request.value, of: "the request"),
      variables: [
        PeerVariable.assignment(PeerVariable.name, name),
        PeerVariable.assignment(PeerVariable.sender, request.sender),
      ],
      collectsOutput: true, unwanted: unwanted)
    let printed = String(decoding: outcome.output, as: UTF8.self).trimmingLineBreaks
    if let failure = command.failure(outcome.termination) {
      return .failure(
        Failure(
          reason: printed.isEmpty ? failure : String(printed.prefix(Self.maximumReasonCharacters))))
    }
    guard request.expectsReply, !printed.isEmpty else { return .success([:]) }
    return .success(
      try Message.read(outcome.output, source: "what \(command.words[0]) printed"))
  }

  private func fail(_ request: PeerRequest, _ reason: String) throws {
    do {
      try request.fail(reason)
    } catch let error as PeerError {
      environment.tell(error)
    }
  }
}

extension String {
  fileprivate var trimmingLineBreaks: String {
    let isBlank: (Character) -> Bool = { $0.isWhitespace }
    return String(drop(while: isBlank).reversed().drop(while: isBlank).reversed())
  }
}
