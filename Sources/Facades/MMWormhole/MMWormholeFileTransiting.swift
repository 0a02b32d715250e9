public import Foundation
import Synchronization
public import Wormhole
import WormholePropertyLists

/// A messenger that stores each message as one property-list file of the container: a `Value` whose
/// identifier is the message's, after "directory/" if there is a directory.
///
/// Programs that use the original also find it in their place: as a keyed archive at
/// `filePath(forIdentifier:)`. What they write, replace or remove there is the message from then
/// on, and its listeners are called.
///
/// It differs from the original in two ways: "/" in an identifier is an ordinary character, and such
/// a message has no archive; and every failure reaches `errorHandler`.
///
/// A subclass may override the methods of `MMWormholeTransiting`, and keep its own files in
/// `messagePassingDirectoryPath()`. A subclass that overrides `messagePassingDirectoryPath()` has
/// its messages there, in a container named "messages".
///
/// Any thread may call its methods: its state is in a Mutex, or set only by initializers.
///
/// ```swift
/// let messenger = MMWormholeFileTransiting(
///   applicationGroupIdentifier: "group.com.example.cinema", optionalDirectory: "wormhole")
/// print(messenger.messageObject(forIdentifier: "button") ?? "none")
/// ```
open class MMWormholeFileTransiting: NSObject, MMWormholeTransiting {
  private var group: Result<SharedContainer, any Error>
  private let directory: String?
  /// The container in a subclass's directory.
  private let elsewhere = Mutex<SharedContainer?>(nil)
  /// Replaced only by a wormhole that makes the messenger, so that both have one handler.
  var reporter = ErrorReporter()

  /// The manager of the files that a subclass keeps.
  public let fileManager = FileManager()

  /// Creates a group's messenger. A container that cannot be opened is reported at every use.
  ///
  /// - Parameters:
  ///   - identifier: The App Group identifier.
  ///   - directory: Separates these messages from others in the group; nil and "" mean none.
  public init(
    applicationGroupIdentifier identifier: String?, optionalDirectory directory: String?
  ) {
    group = Result { try SharedContainer(group: identifier ?? "") }
    self.directory = directory.flatMap { $0.isEmpty ? nil : $0 }
    super.init()
  }

  /// Creates a messenger in any container.
  public convenience init(container: SharedContainer, optionalDirectory directory: String? = nil) {
    self.init(applicationGroupIdentifier: nil, optionalDirectory: directory)
    group = .success(container)
  }

  /// Creates a messenger without a group, which reports every use.
  public override convenience init() {
    self.init(applicationGroupIdentifier: nil, optionalDirectory: nil)
  }

  /// Receives errors; by default they are events of `Diagnostics`.
  public var errorHandler: (@Sendable (any Error) -> Void)? {
    get { reporter.handler }
    set { reporter.handler = newValue }
  }

  func report(_ error: any Error) { reporter.report(error) }

  func reporting<Result>(otherwise: Result, _ body: () throws -> Result) -> Result {
    Diagnostics.reporting(otherwise: otherwise, to: report, body)
  }

  /// Passes a message on to the session; nil is not passed on.
  ///
  /// - Returns: False, because the session, not a notification, delivers it.
  func sending(
    _ messageObject: (any NSCoding)?, _ body: (PropertyListValue) throws -> Void
  ) -> Bool {
    reporting(otherwise: ()) { try messageObject.map { try body(MessageContent.content(of: $0)) } }
    return false
  }

  // MARK: Places

  /// Returns a directory for a subclass's files: the group's container or, with a directory, that
  /// directory in it. It is made if it is missing.
  ///
  /// - Returns: nil if it cannot be made, or its name is one of the container's own entries;
  ///   `errorHandler` receives the reason.
  open func messagePassingDirectoryPath() -> String? {
    reporting(otherwise: nil) {
      let directory = try ownDirectory()
      try directory.make()
      return directory.path
    }
  }

  /// Returns the path of a message's archive, like the original's: "IDENTIFIER.archive" in
  /// `messagePassingDirectoryPath()`. A subclass that itself stores messages may have files there.
  ///
  /// From the first call by any program on, each message in the directory has its archive.
  ///
  /// - Returns: nil without an identifier or a directory.
  open func filePath(forIdentifier identifier: String?) -> String? {
    guard let identifier, !identifier.isEmpty, let path = messagePassingDirectoryPath() else {
      return nil
    }
    // A message passed before the directory was made does not have an archive yet.
    if !isSubclassed { reporting(otherwise: ()) { try archive(identifier)?.settle(.reading) } }
    return path + "/\(identifier)\(Self.archiveEnding)"
  }

  private func ownDirectory() throws -> ContainerDirectory {
    let container = try group.get()
    guard let directory else { return ContainerDirectory("", in: container) }
    let names = directory.split(separator: "/").map(String.init)
    guard let first = names.first, !names.contains(".."), !names.contains("."),
      !ContainerFormat.ownEntries.contains(first)
    else {
      throw WormholeError(
        .inputOutput, "make the directory of messages", path: directory,
        reason: "the container has an entry of that name, or it leads elsewhere",
        remedy: "choose another optionalDirectory")
    }
    return ContainerDirectory(names.joined(separator: "/"), in: container)
  }

  private static let ownKinds: Set<ObjectIdentifier> = [
    ObjectIdentifier(MMWormholeFileTransiting.self),
    ObjectIdentifier(MMWormholeCoordinatedFileTransiting.self),
    ObjectIdentifier(MMWormholeSessionContextTransiting.self),
    ObjectIdentifier(MMWormholeSessionMessageTransiting.self),
    ObjectIdentifier(MMWormholeSessionFileTransiting.self),
  ]

  private var isSubclassed: Bool { !Self.ownKinds.contains(ObjectIdentifier(type(of: self))) }

  /// Whether there is a group or container to keep received messages in.
  var hasGroup: Bool { if case .success = group { true } else { false } }

  /// The container of the messages, the beginning of their identifiers there, and the directory of
  /// their archives.
  private func place() throws
    -> (container: SharedContainer, prefix: String, archives: ContainerDirectory?)
  {
    // Without a path there are no archives: the container itself needs the directory's name. If
    // there is no container, that is thrown below.
    let own = try? ownDirectory()
    if isSubclassed, let path = messagePassingDirectoryPath(), path != own?.path {
      return (try container(in: path), "", ContainerDirectory(elsewhere: path))
    }
    return (try group.get(), directory.map { "\($0)/" } ?? "", own)
  }

  private func container(in path: String) throws -> SharedContainer {
    let place = (path as NSString).appendingPathComponent("messages")
    if let known = elsewhere.withLock({ $0 }), known.url.path == place { return known }
    if !fileManager.fileExists(atPath: place) {
      try fileManager.createDirectory(
        atPath: place, withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700])
    }
    let container = try SharedContainer(url: URL(fileURLWithPath: place, isDirectory: true))
    elsewhere.withLock { $0 = container }
    return container
  }

  /// Returns the value that holds a message.
  func value(_ identifier: String) throws -> PlainValue {
    let (container, prefix, _) = try place()
    return container.value(prefix + identifier)
  }

  /// Returns the archive of a message; nil if a message of this identifier has no archive.
  ///
  /// - Parameter isAwaited: Whether another program may write it later. Otherwise there is none
  ///   without its directory, which every program that asked for an archive has made: most programs
  ///   share no directory with the original, and an archive costs several times the message.
  private func archive(_ identifier: String, isAwaited: Bool = false) throws -> MessageArchive? {
    let (container, prefix, archives) = try place()
    let name = identifier + Self.archiveEnding
    guard let archives, !identifier.isEmpty, name.utf8.count <= 255,
      !name.utf8.contains(where: { [0, UInt8(ascii: "/")].contains($0) }),
      isAwaited || archives.mayExist
    else { return nil }
    return MessageArchive(
      value: container.value(prefix + identifier),
      noteValue: container.onThisMachine.own.value("archive/" + prefix + identifier),
      directory: archives, name: name, access: container.root.access,
      report: { [reporter] in reporter.report($0) })
  }

  private static let archiveEnding = ".archive"

  /// Observes a message's archive, whose news becomes the value; nil if there is none, or if a
  /// subclass may store something else there.
  func observeArchive(_ identifier: String) throws -> ObservationToken? {
    isSubclassed ? nil : try archive(identifier, isAwaited: true)?.observe()
  }

  /// Returns the notification of a message that no value holds.
  func notification(_ identifier: String) throws -> DarwinNotification {
    let (container, prefix, _) = try place()
    return container.notification(prefix + identifier)
  }

  /// Returns the value's last publication, for `hasPublished`; only a subclass needs it.
  func publication(of identifier: String) -> Version? {
    guard isSubclassed else { return nil }
    return reporting(otherwise: nil) { try value(identifier).version() }
  }

  /// Whether a value holds a message; true if that cannot be determined.
  func mayHaveMessage(_ identifier: String) -> Bool {
    // Callers have the reason from reading it.
    (try? value(identifier).version() != nil) ?? true
  }

  /// Whether a message that was just written is a value, which listeners observe: a subclass may
  /// have stored it elsewhere.
  //
  // Another process may have published meanwhile. Then the listeners are called for that
  // publication, and get the message that the messenger has.
  func hasPublished(_ identifier: String, since last: Version?) -> Bool {
    !isSubclassed || publication(of: identifier) != last
  }

  /// Stores a message in one step; nil removes it.
  func store(_ content: PropertyListValue?, _ identifier: String) throws {
    let value = try value(identifier)
    let archive = try archive(identifier)
    // Something else may be in its place. The value is still the message.
    let isSettled = reporting(otherwise: false) {
      try archive?.settle(.changing)
      return true
    }
    if let content {
      try value.replace(with: content)
    } else {
      try value.remove()
    }
    if isSettled { try archive?.settle(.changing) }
  }

  // MARK: MMWormholeTransiting

  /// Stores a message in one step; nil removes it.
  ///
  /// - Returns: False if that failed; `errorHandler` receives the reason.
  open func writeMessageObject(
    _ messageObject: (any NSCoding)?, forIdentifier identifier: String
  ) -> Bool {
    reporting(otherwise: false) {
      try store(messageObject.map { try MessageContent.content(of: $0) }, identifier)
      return true
    }
  }

  /// Returns the latest message, or nil if there is none or it cannot be read (`errorHandler`
  /// receives the reason).
  open func messageObject(forIdentifier identifier: String?) -> (any NSCoding)? {
    guard let identifier else { return nil }
    return reporting(otherwise: nil) {
      let value = try value(identifier)
      try archive(identifier)?.settle(.reading)
      guard let content = try value.read() else { return nil }
      do {
        return try MessageContent.message(from: content)
      } catch {
        throw WormholeError.damaged(value.path, error)
      }
    }
  }

  /// Removes an identifier's message, and a subclass's file at its `filePath(forIdentifier:)`.
  open func deleteContent(forIdentifier identifier: String?) {
    guard let identifier else { return }
    reporting(otherwise: ()) {
      try store(nil, identifier)
      guard isSubclassed, let path = filePath(forIdentifier: identifier),
        fileManager.fileExists(atPath: path)
      else { return }
      try fileManager.removeItem(atPath: path)
    }
  }

  /// Removes every message in the directory, and a subclass's files there; without a directory it
  /// does nothing, as in the original.
  open func deleteContentForAllMessages() {
    guard let directory else { return }
    reporting(otherwise: ()) {
      let (container, prefix, archives) = try place()
      for identifier in try container.valueIdentifiers()
      where identifier.utf8.starts(with: prefix.utf8) {
        let name = identifier.utf8.dropFirst(prefix.utf8.count)
        try store(nil, String(decoding: name, as: UTF8.self))
      }
      for name in try archives?.names() ?? [] where name != "messages" {
        if name.hasSuffix(Self.archiveEnding) {
          try store(nil, String(name.dropLast(Self.archiveEnding.count)))
        }
        if isSubclassed, !directory.isEmpty { try archives?.remove(name) }
      }
    }
  }
}

/// A messenger whose accesses are coordinated. Those of `MMWormholeFileTransiting` are, too: each
/// change takes the value's lease, and a reader gets a whole message without waiting. So the two
/// kinds share their messages, as in the original.
///
/// ```swift
/// let wormhole = MMWormhole(
///   applicationGroupIdentifier: "group.com.example.cinema", optionalDirectory: "wormhole",
///   transitingType: .coordinatedFile)
/// ```
open class MMWormholeCoordinatedFileTransiting: MMWormholeFileTransiting {
  /// Kept for its callers: a message is always written in one step, and Linux has no data
  /// protection classes.
  open var additionalFileWritingOptions: NSData.WritingOptions = []
}
