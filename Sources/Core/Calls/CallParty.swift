import Containers
import Dispatch
import Monitoring

/// The other end of calls: a process that calls, or is called.
package final class CallParty: Sendable {
  /// Its mailbox.
  package let address: String
  private let outlet: MailboxOutlet
  /// Reports its end.
  private let observation: ObservationToken?

  /// - Returns: nil for a text that is no address.
  init?(in container: SharedContainer, _ address: String) {
    guard let outlet = MailboxOutlet(in: container, to: address) else { return nil }
    self.address = address
    self.outlet = outlet
    observation = nil
  }

  /// - Parameter ended: called once when it has ended, on a queue of its own.
  /// - Returns: nil if it has ended already, and for a text that is no address.
  init?(
    in container: SharedContainer, _ address: String, ended: @escaping @Sendable () -> Void
  ) throws {
    guard let outlet = MailboxOutlet(in: container, to: address),
      let observation = try Mailbox.observeEnd(of: address, in: container, ended: ended)
    else { return nil }
    self.address = address
    self.outlet = outlet
    self.observation = observation
  }

  var path: String { outlet.path }

  /// Whether its endpoint is notified of its end.
  var isWatched: Bool { observation != nil }

  func post(_ message: CallMessage) throws -> MailboxOutlet.Outcome {
    try outlet.post(message.propertyList)
  }

  /// Posts a message that the other end can do without.
  func postLater(_ message: CallMessage) {
    // This may be a task, or the monitor's thread.
    Blocking.queue().async { [self] in
      do {
        _ = try post(message)
      } catch {
        // A full disk, for example: the other end times out, or learns that this one has ended.
        return
      }
    }
  }
}
