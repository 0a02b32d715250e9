import MMWormhole

/// Messages in the memory of one process, as tests of apps have them.
public class MemoryTransiting: NSObject, MMWormholeTransiting {
  private var messages = [String: NSCoding]()

  public func writeMessageObject(
    _ messageObject: NSCoding?, forIdentifier identifier: String
  ) -> Bool {
    messages[identifier] = messageObject
    return true
  }

  public func messageObject(forIdentifier identifier: String?) -> NSCoding? {
    guard let identifier = identifier else { return nil }
    return messages[identifier]
  }

  public func deleteContent(forIdentifier identifier: String?) {
    guard let identifier = identifier else { return }
    messages.removeValue(forKey: identifier)
  }

  public func deleteContentForAllMessages() {
    messages.removeAll()
  }
}

/// Files of a form of its own, in the place that the class above it names. Its `try?` are how such code
/// is written; the tests look at the files.
public class JSONFileTransiting: MMWormholeFileTransiting {
  override public func writeMessageObject(
    _ messageObject: NSCoding?, forIdentifier identifier: String
  ) -> Bool {
    guard let messageObject = messageObject else { return true }
    guard let path = filePath(forIdentifier: identifier),
      let data = try? JSONSerialization.data(withJSONObject: ["message": messageObject])
    else { return false }
    do {
      try data.write(to: URL(fileURLWithPath: path), options: .atomic)
      return true
    } catch {
      return false
    }
  }

  override public func messageObject(forIdentifier identifier: String?) -> NSCoding? {
    guard let path = filePath(forIdentifier: identifier),
      let data = fileManager.contents(atPath: path),
      let json = (try? JSONSerialization.jsonObject(with: data)) as? [String: Any]
    else { return nil }
    return json["message"] as? NSCoding
  }
}

/// Counts what it stores, and leaves the storing to the class above it.
public class CountingTransiting: MMWormholeCoordinatedFileTransiting {
  public private(set) var written = 0

  override public init(
    applicationGroupIdentifier identifier: String?, optionalDirectory directory: String?
  ) {
    super.init(applicationGroupIdentifier: identifier, optionalDirectory: directory)
    additionalFileWritingOptions = .atomic
  }

  override public func writeMessageObject(
    _ messageObject: NSCoding?, forIdentifier identifier: String
  ) -> Bool {
    written += 1
    return super.writeMessageObject(messageObject, forIdentifier: identifier)
  }
}

/// Files outside every group, as in tests of apps.
public class TemporaryTransiting: MMWormholeFileTransiting {
  public var testDirectory = ""
  override public func messagePassingDirectoryPath() -> String? { return testDirectory }
}

/// Wormholes with each of them.
extension AlarmCenter {
  public func use(_ kind: String, _ directory: String) {
    let wormhole = MMWormhole(
      applicationGroupIdentifier: kind == "temporary" ? nil : AppGroup.identifier,
      optionalDirectory: AppGroup.directory, transitingType: .coordinatedFile)
    switch kind {
    case "memory": wormhole.wormholeMessenger = MemoryTransiting()
    case "json":
      wormhole.wormholeMessenger = JSONFileTransiting(
        applicationGroupIdentifier: AppGroup.identifier, optionalDirectory: AppGroup.directory)
    case "counting":
      wormhole.wormholeMessenger = CountingTransiting(
        applicationGroupIdentifier: AppGroup.identifier, optionalDirectory: AppGroup.directory)
    case "temporary":
      let messenger = TemporaryTransiting(
        applicationGroupIdentifier: nil, optionalDirectory: nil)
      messenger.testDirectory = directory
      wormhole.wormholeMessenger = messenger
    default: break
    }
    self.wormhole = wormhole
  }

  public var directoryPath: String? {
    return (wormhole.wormholeMessenger as? MMWormholeFileTransiting)?.messagePassingDirectoryPath()
  }
}
