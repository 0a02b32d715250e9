public import Foundation
import Wormhole
import WormholePeers

extension WCSession {
  /// Sends a dictionary that is certain to be delivered, in the order of sending, whenever the
  /// counterpart runs.
  ///
  /// It is in the container when this returns, and outlives both processes. A refusal
  /// (`sessionNotActivated`, `sessionInactive`, `deviceNotPaired`, `watchAppNotInstalled`,
  /// `payloadUnsupportedTypes`, `payloadTooLarge` beyond 65,536 bytes, `insufficientSpace`) goes
  /// to the delegate's `session(_:didFinish:error:)`, and the transfer is not listed as outstanding.
  @discardableResult
  public func transferUserInfo(_ userInfo: [String: Any] = [:]) -> WCSessionUserInfoTransfer {
    transfer(userInfo)
  }

  /// Sends a dictionary for the watch's complication, and starts the watch's app if it registered to
  /// be started for urgent work: 50 times a day (UTC) for each watch, while its complication is
  /// enabled. Afterwards, and on a watch, it acts as `transferUserInfo`.
  ///
  /// It becomes the *current* one; the previous one is delivered nevertheless, and in its turn.
  @discardableResult
  public func transferCurrentComplicationUserInfo(
    _ userInfo: [String: Any] = [:]
  ) -> WCSessionUserInfoTransfer {
    transfer(userInfo) { route in
      guard let complications = route.link.complications,
        route.pairing.activeWatch?.isComplicationEnabled == true
      else { return false }
      return try complications.use()
    }
  }

  /// The dictionaries that are neither delivered nor failed nor cancelled, also of an earlier process
  /// of this side; in the order of sending. Empty while the session is not activated.
  public var outstandingUserInfoTransfers: [WCSessionUserInfoTransfer] {
    link?.userInfoTransfers.all ?? []
  }

  /// Sends a file that is certain to be delivered, whenever the counterpart runs, after the files
  /// that were sent before.
  ///
  /// Returns at once; the content is copied into the container, so it must not be changed or
  /// removed before `progress` is complete. A refusal (as of `transferUserInfo`, and
  /// `fileAccessDenied` if the URL names no readable regular file, `invalidParameter` if it is not
  /// a file URL) goes to the delegate's `session(_:didFinish:error:)`.
  @discardableResult
  public func transferFile(_ file: URL, metadata: [String: Any]?) -> WCSessionFileTransfer {
    transfer(file, metadata, options: .init())
  }

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

  /// The files that are neither delivered nor failed nor cancelled; as
  /// `outstandingUserInfoTransfers`.
  public var outstandingFileTransfers: [WCSessionFileTransfer] { link?.fileTransfers.all ?? [] }

  /// Whether a dictionary or a file has arrived that the delegate has not got yet. Costs a look at
  /// both queues. Contexts and messages do not count: contexts can be read at any time, and senders
  /// wait for messages.
  public var hasContentPending: Bool {
    Diagnostics.reporting(otherwise: false) { try link?.hasContentPending() ?? false }
  }

  // MARK: As long as they are useful, which Apple's framework does not offer

  /// Sends a dictionary as `transferUserInfo(_:)` does, but only as long as it has not expired, and only
  /// the newest of its key.
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

  /// Sends a file as `transferFile(_:metadata:)` does, but only as long as it has not expired.
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
      // It is queued by now: a failure of one of these does not change that.
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
