import AppGroup
import PropertyLists

/// How a request ends for its caller.
typealias PeerResult = Result<PropertyListValue, PeerError>

/// How a peer answers a request.
enum PeerAnswer: Sendable {
  case reply(PropertyListValue)
  case failure(PeerError.Code, String)

  /// The codes that a peer may use; any other is just a failure.
  private static let codes: Set<PeerError.Code> = [
    .failed, .notHandled, .notAnswered, .unreachable, .queueFull, .unexpectedValue,
  ]

  init(_ answer: CallAnswer) {
    switch answer {
    case .reply(let value): self = .reply(value)
    case .failure(let code, let reason):
      let code = PeerError.Code(rawValue: code)
      self = .failure(code.flatMap { Self.codes.contains($0) ? $0 : nil } ?? .failed, reason)
    }
  }

  var callAnswer: CallAnswer {
    switch self {
    case .reply(let value): .reply(value)
    case .failure(let code, let reason): .failure(code: code.rawValue, reason: reason)
    }
  }

  /// The error of a handler's own preparation, with its code.
  struct Thrown: Error {
    let code: PeerError.Code
    let reason: String
  }
}
