import Wormhole
import WormholePeers
import WormholePropertyLists

// Hands everything that arrives to the delegate; all of it on the session's queue.
extension SessionLink {
  func deliver(_ message: PeerMessage) -> HandOver {
    guard isExpected(from: message.sender) else { return .leftForAnotherWatch }
    let session = session
    return end(
      message.end,
      Payload.objects(message.value).map { userInfo in
        session.offer { $0.session(session, didReceiveUserInfo: userInfo) }
      }, "session(_:didReceiveUserInfo:)")
  }

  func deliver(_ file: PeerFile) -> HandOver {
    guard isExpected(from: file.sender) else { return .leftForAnotherWatch }
    let session = session
    let inbox = Inbox(place)
    do {
      let url = try inbox.put(file)
      defer { inbox.remove(file) }
      let received = WCSessionFile(url, .value(file.metadata))
      return end(
        file.end, session.offer { $0.session(session, didReceive: received) },
        "session(_:didReceive:)")
    } catch {
      Diagnostics.report(error)
      return end({ _ in try file.fail("\(error)") }, nil, "")
    }
  }

  /// - Parameter offer: nil for a value that no session would send.
  private func end(
    _ entry: (_ failure: String?) throws -> Void, _ offer: WCSession.Offer?, _ method: String
  ) -> HandOver {
    do {
      switch offer {
      case .handled: try entry(nil)
      case .declined: try entry("the delegate does not implement \(method)")
      case nil: try entry("a session takes dictionaries only")
      case .noDelegate: return .leftForDelegate
      }
    } catch {
      // Mostly because this process was stopped and replaced: then the other process gets it again.
      Diagnostics.report(error)
    }
    return .done
  }

  func deliver(_ context: Result<PropertyListValue, PeerError>) {
    let session = session
    guard isCurrent else { return }
    switch context {
    case .success(let value):
      guard let objects = Payload.objects(value) else { return }
      session.notify { $0.session(session, didReceiveApplicationContext: objects) }
    case .failure(let error): Diagnostics.report(error)
    }
  }
}

extension PeerDelivery {
  fileprivate func end(_ failure: String?) throws {
    if let failure { try fail(failure, isKept: false) } else { try acknowledge() }
  }
}
