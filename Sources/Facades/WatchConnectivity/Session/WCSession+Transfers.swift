public import Foundation
import Wormhole
import WormholePeers

extension WCSession {
  func transfer(
    _ file: URL, _ metadata: [String: Any]?, options: PeerFileOptions
  ) -> WCSessionFileTransfer {
    do {
      guard file.isFileURL else {
        throw WCError(.invalidParameter, reason: "\(file) is not a file URL.")
      }
      let value = try metadata.map { objects in
        try Payload.value(objects, maximumBytes: Payload.maximumUserInfoBytes)
      }
      let route = try route()
      let sent = try route.peer.transfer(
        fileAt: file, to: route.counterpart, metadata: value,
        options: options)
      let transfer = WCSessionFileTransfer(sent, in: route.link)
      route.link.fileTransfers.add(transfer, endsInOrder: options.expiry == nil)
      return transfer
    } catch {
      let transfer = WCSessionFileTransfer(WCSessionFile(file, .given(metadata)))
      refuse(transfer, error)
      return transfer
    }
  }

  // MARK: Sending only while useful, which Apple's framework does not offer

  /// Sends a dictionary as `transferUserInfo(_:)` does, but only until it expires, and only the
  /// newest with its key.
  ///
  /// ```swift
  /// WCSession.default.transferUserInfo(["position": 17], expiresAfter: .seconds(60), key: "position")
  /// ```
  ///
  /// - Parameters:
  ///   - userInfo: the dictionary.
  ///   - lifetime: how long it may be delivered; nil for no limit. A counterpart that receives
  ///     later does not get it, and the delegate here then gets `transferTimedOut`.
  ///   - key: a newer dictionary with the same key replaces a waiting one; nil for none. The
  ///     delegate here gets `deliveryFailed` for the older one. A dictionary that the counterpart
  ///     already has is delivered.
  /// - Complexity: as `PeerSession.enqueue`.
  @discardableResult
  public func transferUserInfo(
    _ userInfo: [String: Any], expiresAfter lifetime: Duration?, key: String? = nil
  ) -> WCSessionUserInfoTransfer {
    transfer(userInfo, .init(expiry: lifetime, key: key, keepsReceipt: true))
  }

  /// Sends a file as `transferFile(_:metadata:)` does, but only until it expires.
  ///
  /// Files have no keys: a file whose copying has begun is sent.
  ///
  /// - Parameters:
  ///   - file: a regular file.
  ///   - metadata: a property list that is sent with it.
  ///   - lifetime: how long it may be copied and delivered; see the form for dictionaries.
  @discardableResult
  public func transferFile(
    _ file: URL, metadata: [String: Any]?, expiresAfter lifetime: Duration?
  ) -> WCSessionFileTransfer {
    transfer(file, metadata, options: .init(expiry: lifetime))
  }

  // MARK: Sending

  func transfer(
    _ userInfo: [String: Any], _ options: PeerMessageOptions = .init(keepsReceipt: true),
    isForComplication: (Route) throws -> Bool = { _ in false }
  ) -> WCSessionUserInfoTransfer {
    do {
      let value = try Payload.value(userInfo, maximumBytes: Payload.maximumUserInfoBytes)
      let route = try route()
      let link = route.link
      let isUrgent = try isForComplication(route)
      var options = options
      options.isUrgent = isUrgent
      let sent: PeerMessageTransfer
      do {
        sent = try route.peer.enqueue(value, to: route.counterpart, options: options)
      } catch {
        if isUrgent { Diagnostics.reporting { try link.complications?.giveBack() } }
        throw error
      }
      // It is already queued: a failure of one of these does not change that.
      if isUrgent { Diagnostics.reporting { try link.complications?.setCurrent(sent.id) } }
      if let failure = sent.launchFailure { Diagnostics.report(failure) }
      let transfer = WCSessionUserInfoTransfer(sent, in: link)
      link.userInfoTransfers.add(
        transfer, endsInOrder: options.expiry == nil && options.key == nil)
      if isUrgent { queue.async { link.compare() } }
      return transfer
    } catch {
      let transfer = WCSessionUserInfoTransfer(.given(userInfo))
      refuse(transfer, error)
      return transfer
    }
  }

  /// Reports an error that no delegate gets, for modules above.
  package func report(_ error: any Error) { Diagnostics.report(error) }

  private func refuse(_ transfer: some OutgoingTransfer, _ error: any Error) {
    let error = WCError(error, of: .transfer)
    queue.async { self.notify { transfer.notify($0, of: self, error) } }
  }
}
