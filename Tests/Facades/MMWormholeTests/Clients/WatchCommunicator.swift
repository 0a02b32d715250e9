import MMWormhole

/// The names of the messages between the two apps.
enum Routes {
  enum App {
    static let alarms = "App:alarms"
    static let cancelAlarm = "App:cancelAlarm"
  }
  enum Watch {
    static let alarms = "Watch:alarms"
    static let note = "Watch:note"
    static let picture = "Watch:picture"
  }
}

/// The phone's side.
public class WatchCommunicator {
  fileprivate var wormhole: MMWormhole!
  fileprivate var files: MMWormhole!
  fileprivate var listeningWormhole: MMWormholeSession!

  public private(set) var cancelled: [Int] = []
  private var titles = ["tea", "eggs"]

  public static let sharedInstance = WatchCommunicator()

  public func configureRoutes() {
    listeningWormhole = MMWormholeSession.sharedListening()

    wormhole = MMWormhole(
      applicationGroupIdentifier: AppGroup.identifier, optionalDirectory: AppGroup.directory,
      transitingType: .sessionContext)
    files = MMWormhole(
      applicationGroupIdentifier: AppGroup.identifier, optionalDirectory: AppGroup.directory,
      transitingType: .sessionFile)

    listeningWormhole.listenForMessage(withIdentifier: Routes.App.alarms) { _ in
      self.sendAlarms()
    }

    listeningWormhole.listenForMessage(withIdentifier: Routes.App.cancelAlarm) { messageObject in
      guard let message = messageObject as? [String: AnyObject],
        let index = message["index"] as? Int
      else { return }
      self.cancelled.append(index)
      self.titles.remove(at: index)
      self.sendAlarms()
    }

    listeningWormhole.activateListening()
  }

  public func sendAlarms() {
    let message = ["alarms": titles.map { ["title": $0] as AnyObject }]
    wormhole.passMessageObject(message as NSCoding, identifier: Routes.Watch.alarms)
  }

  public func sendNote(_ text: String) {
    wormhole.passMessageObject(text as NSCoding, identifier: Routes.Watch.note)
  }

  public func sendPicture(_ data: Data) {
    files.passMessageObject(data as NSData, identifier: Routes.Watch.picture)
  }
}

/// The watch's side.
public class PhoneCommunicator {
  public static let sharedInstance = PhoneCommunicator()

  private let session = MMWormholeSession.sharedListening()
  private lazy var wormhole = MMWormhole(
    applicationGroupIdentifier: AppGroup.identifier, optionalDirectory: AppGroup.directory,
    transitingType: .sessionMessage)
  private lazy var context = MMWormhole(
    applicationGroupIdentifier: AppGroup.identifier, optionalDirectory: AppGroup.directory,
    transitingType: .sessionContext)

  public private(set) var titles: [[String]] = []
  public private(set) var notes: [String] = []
  public private(set) var pictures: [Int] = []

  public func start() {
    session.wormholeMessenger = MMWormholeSessionFileTransiting(
      applicationGroupIdentifier: AppGroup.identifier, optionalDirectory: AppGroup.directory)
    session.listenForMessage(withIdentifier: Routes.Watch.alarms) { [weak self] message in
      self?.titles.append(PhoneCommunicator.titles(of: message))
    }
    session.listenForMessage(withIdentifier: Routes.Watch.note) { [weak self] message in
      self?.notes.append(message as? String ?? "nil")
    }
    session.listenForMessage(withIdentifier: Routes.Watch.picture) { [weak self] message in
      guard let data = message as? Data else { return }
      self?.pictures.append(data.count)
    }
    session.activateSessionListening()
  }

  public var isReachable: Bool { return WCSession.default.isReachable }

  public func requestAlarms() {
    wormhole.passMessageObject([] as NSArray, identifier: Routes.App.alarms)
  }

  public func cancel(_ index: Int) {
    wormhole.passMessageObject(["index": index] as NSCoding, identifier: Routes.App.cancelAlarm)
  }

  /// What a new screen shows before anything arrives.
  public var currentTitles: [String] {
    return PhoneCommunicator.titles(of: context.message(withIdentifier: Routes.Watch.alarms))
  }

  public var storedPicture: Int? {
    let data = session.wormholeMessenger.messageObject(forIdentifier: Routes.Watch.picture)
    return (data as? Data)?.count
  }

  private static func titles(of message: Any?) -> [String] {
    guard let message = message as? [String: [AnyObject]] else { return [] }
    return (message["alarms"] ?? []).compactMap {
      ($0 as? [String: AnyObject])?["title"] as? String
    }
  }
}
