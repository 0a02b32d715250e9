public import AppGroup
import PropertyLists

/// A messenger that stores each message as one property-list file of the container: a `Value` whose
/// identifier is the message's, after "directory/" if there is a directory.
///
/// It differs from the original in three ways: a message is anything that a property list can hold,
/// because there is no `NSCoding` archive that hostile bytes could not abuse; "/" in an identifier
/// is an ordinary character; and every failure reaches `errorHandler`.
public final class MMWormholeFileTransiting: MMWormholeTransiting {
  private let opened: Result<SharedContainer, any Error>
  private let directory: String?
  private let reporter = ErrorReporter()

  /// Creates a messenger of a group. A container that cannot be opened is reported at every use.
  ///
  /// - Parameters:
  ///   - identifier: The App Group identifier.
  ///   - directory: Separates these messages from others of the group; nil and "" mean none.
  public init(applicationGroupIdentifier identifier: String?, optionalDirectory directory: String?)
  {
    opened = Result { try SharedContainer(group: identifier ?? "") }
    self.directory = directory.flatMap { $0.isEmpty ? nil : $0 }
  }

  /// Creates a messenger of any container.
  public init(container: SharedContainer, optionalDirectory directory: String? = nil) {
    opened = .success(container)
    self.directory = directory.flatMap { $0.isEmpty ? nil : $0 }
  }

  /// The receiver of errors; by default they are written to standard error.
  public var errorHandler: (@Sendable (any Error) -> Void)? {
    get { reporter.handler }
    set { reporter.handler = newValue }
  }

  func report(_ error: any Error) { reporter.report(error) }

  func container() throws -> SharedContainer { try opened.get() }

  /// Returns the value that holds a message.
  func value(_ identifier: String) throws -> Value {
    try container().value(qualified(identifier))
  }

  /// Returns the identifier within the container.
  func qualified(_ identifier: String) -> String {
    directory.map { "\($0)/\(identifier)" } ?? identifier
  }

  /// Returns the path of a message's file, whether or not it exists; nil without an identifier or a
  /// container.
  public func filePath(forIdentifier identifier: String?) -> String? {
    guard let identifier else { return nil }
    do {
      return try value(identifier).path
    } catch {
      report(error)
      return nil
    }
  }

  func store(_ messageObject: Any?, _ identifier: String) throws {
    guard let messageObject else {
      try value(identifier).remove()
      return
    }
    let content = try PropertyListValue(propertyList: messageObject)
    try value(identifier).replace(with: content)
  }

  // MARK: MMWormholeTransiting

  /// Stores a message in one step; nil removes it.
  ///
  /// - Returns: False if that failed; `errorHandler` receives the reason.
  public func writeMessageObject(_ messageObject: Any?, forIdentifier identifier: String?) -> Bool {
    guard let identifier else { return false }
    do {
      try store(messageObject, identifier)
      return true
    } catch {
      report(error)
      return false
    }
  }

  /// Returns the latest message, or nil if there is none or it cannot be read (`errorHandler`
  /// receives the reason).
  public func messageObject(forIdentifier identifier: String?) -> Any? {
    guard let identifier else { return nil }
    do {
      return try value(identifier).read()?.propertyListObject
    } catch {
      report(error)
      return nil
    }
  }

  /// Removes the message of an identifier.
  public func deleteContent(forIdentifier identifier: String?) {
    guard let identifier else { return }
    do {
      try value(identifier).remove()
    } catch {
      report(error)
    }
  }

  /// Removes every message of the directory; without a directory it does nothing, as in the
  /// original.
  public func deleteContentForAllMessages() {
    guard let directory else { return }
    do {
      for identifier in try container().valueIdentifiers()
      where identifier.utf8.starts(with: "\(directory)/".utf8) {
        try container().value(identifier).remove()
      }
    } catch {
      report(error)
    }
  }
}

/// The original's coordinated messenger; here every file is coordinated.
public typealias MMWormholeCoordinatedFileTransiting = MMWormholeFileTransiting
