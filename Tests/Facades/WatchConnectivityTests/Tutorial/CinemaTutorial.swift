import Foundation
import WatchConnectivity

/// The cinema in two processes: the watch with the class as it was written for Apple's devices, the
/// phone with the form for both platforms.
public final class CinemaTutorial {
  private let phone: CinemaPhone?
  private let lock = NSLock()
  private var replies: [String] = []

  /// Starts one side; the session is configured already.
  public init(isPhone: Bool, codes: URL) {
    phone = isPhone ? CinemaPhone() : nil
    if let phone {
      phone.start()
    } else {
      Connectivity.shared.codesDirectory = codes
    }
  }

  /// The bought films, as this side knows them.
  public var purchased: [Int] { phone?.purchasedIDs ?? Connectivity.shared.purchasedIDs }

  /// Buys on the watch, and asks for the codes.
  public func buy(_ ids: [Int], _ delivery: String) {
    let kinds: [String: Delivery] = [
      "failable": .failable, "guaranteed": .guaranteed, "highPriority": .highPriority,
    ]
    let expectsReply = delivery == "failable"
    Connectivity.shared.send(
      movieIDs: ids, delivery: kinds[delivery] ?? .guaranteed, wantedCodes: ids,
      replyHandler: expectsReply
        ? { [self] in add("verified \($0["verified"] as? Bool ?? false)") } : nil,
      errorHandler: { [self] in add(($0 as? WCError)?.code == .notReachable ? "away" : "\($0)") })
  }

  /// The received answers that the main queue has handled.
  public var answers: [String] { lock.withLock { replies } }

  private func add(_ text: String) { lock.withLock { replies.append(text) } }
}
