import Foundation

/// Messages that a user sends by hand: with a reply handler and without one, of numbers and of data.
@MainActor
enum Messages {
  /// Sends a message.
  ///
  /// - Parameters:
  ///   - verb: "tell" and "data" have no reply handler, "ask" and "askdata" have one.
  ///   - argument: The numbers of the wanted QR codes, or the text that the data is.
  static func send(_ verb: String, _ argument: String) -> String {
    let other = Cinema.isPhone ? "watch" : "phone"
    let fail: @Sendable (any Error) -> Void = { error in
      Cinema.log(.notTold(error.localizedDescription))
    }
    if verb.hasSuffix("data") {
      let reply: @Sendable (Data) -> Void = { data in
        Cinema.log(.dataReplies(String(decoding: data, as: UTF8.self)))
      }
      Connectivity.shared.send(
        data: Data(argument.utf8), replyHandler: verb == "askdata" ? reply : nil,
        errorHandler: fail)
      return "sends data \(argument)"
    }
    let reply: @Sendable ([String: Any]) -> Void = { reply in
      let isVerified = reply[UserInfoKey.verified] as? Bool == true
      Cinema.log(.verified(isVerified))
    }
    let wanted = argument.split(separator: " ").compactMap { Int($0) }
    Connectivity.shared.send(
      movieIds: TicketOffice.shared.purchased.map(\.id), delivery: .failable,
      wantedQrCodes: wanted.isEmpty ? nil : wanted,
      replyHandler: verb == "ask" ? reply : nil, errorHandler: fail)
    return "\(verb == "ask" ? "asks" : "tells") the \(other)"
  }
}
