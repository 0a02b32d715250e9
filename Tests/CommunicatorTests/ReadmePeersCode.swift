import AppGroup
import Communicator
import Foundation
import PeerConnectivity
import PropertyLists
import WatchConnectivity

/// The Swift code of the section on peers in README.md, line by line: `ReadmePeersTests` compares.
enum ReadmePeersCode {
  static func session(_ container: SharedContainer) async throws {
    let phone = try PeerSession(container, name: "phone")
    phone.requests.handle { request in ["sold": request.value] }
    try await phone.activate()

    let till = try PeerSession(container, name: "till")
    let reply = try await till.request([7, 8], to: "phone", timeout: .seconds(2))
    let transfer = try await till.enqueue(["film": "Metropolis"], to: "phone")
    let receiver = try await phone.receiveMessages()
    if let message = try await receiver.next(until: .now + .seconds(2)) {
      print(message.sender, message.value, message.isRedelivery)
      try message.acknowledge()
    }
    print(reply, try await transfer.end())
  }

  final class Connectivity: NSObject, WCSessionDelegate {
    func session(
      _ session: WCSession, activationDidCompleteWith state: WCSessionActivationState,
      error: (any Error)?
    ) {
      session.transferUserInfo(["film": "Metropolis"])
    }

    func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any]) {
      print(userInfo)
    }
  }

  static func activate() {
    let connectivity = Connectivity()
    WCSession.default.delegate = connectivity
    WCSession.default.activate()
  }

  static func communicator() {
    GuaranteedMessage.observe { message in
      print(message.identifier, message.content)
    }
    Reachability.observe { reachability in
      guard reachability != .notReachable else { return }
      Communicator.shared.send(GuaranteedMessage(identifier: "sold", content: ["seats": [7, 8]]))
    }
  }
}
