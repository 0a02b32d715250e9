import FoundationEssentials
import Synchronization
public import Wormhole
import WormholePropertyLists

/// Defaults that any number of processes share; source-compatible with `UserDefaults(suiteName:)`.
///
/// Every read sees all earlier writes by every process, without any call. Every write is visible to
/// all processes when it returns, survives the death of this process, and changes only its own key:
/// other processes' simultaneous writes to other keys are kept. `synchronize()`, and
/// `durability: .durable` where a method has it, return once the suite would also survive a power
/// loss.
///
/// The methods of UserDefaults do not throw. Their errors are reported to `onError`; a getter then
/// continues with the rest of the search list, and a setter changes nothing. The additional methods
/// (`read`, `write`, `remove`, `update`, …) throw. Both kinds may block their thread for a few
/// system calls, and writes for up to ten seconds while another process changes the same suite.
/// Tasks use the forms with `async`.
///
/// A suite is one property-list file with exactly its keys, so other tools can read it: `wormhole
/// defaults read` or, with the path of `path()`, `plutil` and Python's `plistlib`.
///
/// ```swift
/// let defaults = try GroupDefaults(group: "group.com.example.cinema")
/// defaults.register(defaults: ["volume": 5])
/// defaults.set(7, forKey: "volume")           // every process sees it when this returns
/// try await defaults.update(Int.self, forKey: "sold") { $0 = ($0 ?? 0) + 1 }
/// ```
public final class GroupDefaults: Sendable {
  /// The original's domain of all programs, which does not exist here.
  public static let globalDomain = "NSGlobalDomain"
  /// The domain of the command line.
  public static let argumentDomain = "NSArgumentDomain"
  /// The domain of the values that `register(defaults:)` received.
  public static let registrationDomain = "NSRegistrationDomain"

  /// The parts of the search list besides the suite itself.
  struct Surroundings: Sendable {
    var volatileDomains: [String: Suite.Contents] = [:]
    var addedSuites: [(name: String, suite: Suite)] = []
  }

  /// The registration domain: this process's fallback values, which are in each of its search
  /// lists.
  static let registered = Mutex<Suite.Contents>([:])

  /// The name that this object was created with.
  let name: String?
  /// The container of all suites; nil if each is in its group's container.
  let container: SharedContainer?
  let surroundings: Mutex<Surroundings>
  let reporter = ErrorReporter()
  private let ownChange = Mutex<(@Sendable (OwnChange) -> Void)?>(nil)
  private let opened: Result<Suite, any Error>

  /// Creates the defaults of a group, in the container of that name.
  ///
  /// A container that cannot be opened is reported to `onError` at every use.
  ///
  /// - Parameter suitename: An App Group identifier such as `group.com.example.cinema`; nil means
  ///   the program's own defaults, as in `standard`.
  /// - Returns: nil, as in the original, for names that stand for another domain, and for "".
  public convenience init?(suiteName suitename: String?) {
    let name = suitename ?? Self.programName
    if Suite.reserved.contains(name) { return nil }
    self.init(name, nil, opened: Result { try Suite.named(name, in: nil) })
  }

  /// Creates the program's own defaults, as in `standard`.
  public convenience init() {
    let name = Self.programName
    self.init(name, nil, opened: Result { try Suite.named(name, in: nil) })
  }

  /// Creates a group's defaults.
  ///
  /// - Parameter group: An App Group identifier; its container is created if it is missing.
  /// - Throws: `WormholeError`, as opening the container, or `.invalidSuiteName`.
  public convenience init(group: String) throws {
    self.init(group, nil, opened: .success(try Suite.named(group, in: nil)))
  }

  /// Creates the defaults of any container. No file is touched before the first read or write.
  ///
  /// - Parameters:
  ///   - container: The container of the defaults.
  ///   - suite: Any string; nil is the container's own suite, which is its group's. For this
  ///     object, all suite names mean suites in this container.
  public convenience init(suite: String? = nil, in container: SharedContainer) {
    self.init(suite, container, opened: .success(Suite(suite, in: container)))
  }

  private init(
    _ name: String?, _ container: SharedContainer?, opened: Result<Suite, any Error>
  ) {
    self.name = name
    self.container = container
    self.opened = opened
    surroundings = Mutex(
      Surroundings(volatileDomains: [Self.argumentDomain: ArgumentDomain.ofProcess]))
  }

  /// The program's own defaults: those of the group with the program's name.
  public static let standard = GroupDefaults()

  /// Does nothing, because `standard` has no state to reset.
  public static func resetStandardUserDefaults() {}

  private static var programName: String {
    let name = ProcessInfo.processInfo.processName
    return name.isEmpty ? "program" : name
  }

  /// Receives errors from methods that cannot throw; by default they are events of `Diagnostics`.
  public var onError: (@Sendable (any Error) -> Void)? {
    get { reporter.handler }
    set { reporter.handler = newValue }
  }

  /// Returns the path of the suite's file, whether or not it exists.
  ///
  /// - Throws: `WormholeError`, as opening the container did.
  public func path() throws -> String { try suite().value.path }

  func suite() throws -> Suite { try opened.get() }

  /// The search list's domains before the registered values, in order.
  var searched: (arguments: Suite.Contents, suites: [Result<Suite, any Error>]) {
    surroundings.withLock { surroundings in
      (
        surroundings.volatileDomains[Self.argumentDomain] ?? [:],
        [opened] + surroundings.addedSuites.map { .success($0.suite) }
      )
    }
  }

  // MARK: Changes

  /// - Parameter key: The only key that the body changes; nil for any.
  func edit<Result: Sendable>(
    _ terms: ChangeTerms = .init(), of key: String? = nil,
    _ body: @escaping @Sendable (inout Suite.Contents) throws -> Result
  ) throws -> Result {
    let suite = try suite()
    reportOwnChange(.begins)
    defer { reportOwnChange(.ends) }
    let result = try suite.edit(terms, of: key, body)
    reportOwnChange()
    return result
  }

  func edit<Result: Sendable>(
    _ terms: ChangeTerms, of key: String? = nil,
    _ body: @escaping @Sendable (inout Suite.Contents) throws -> Result
  ) async throws -> Result {
    let suite = try suite()
    reportOwnChange(.begins)
    defer { reportOwnChange(.ends) }
    let result = try await suite.edit(terms, of: key, body)
    reportOwnChange()
    return result
  }

  /// A moment of a change that this object makes.
  package enum OwnChange: Sendable {
    /// Other processes may see it from now on.
    case begins
    case isMade
    /// The call returns next, whether or not it has changed anything.
    case ends
  }

  /// Calls a closure at each moment of this object's later changes, on the changing thread.
  package func onOwnChange(_ observer: @escaping @Sendable (OwnChange) -> Void) {
    ownChange.withLock { $0 = observer }
  }

  func reportOwnChange(_ moment: OwnChange = .isMade) { ownChange.withLock(\.self)?(moment) }

  /// Runs the body of a source-compatible method and reports the error that it throws.
  package func reporting<Result>(_ otherwise: Result, _ body: () throws -> Result) -> Result {
    Diagnostics.reporting(otherwise: otherwise, to: reporter.report, body)
  }
}

/// The codes of failures that concern defaults, not their container.
///
/// ```swift
/// do {
///   print(try GroupDefaults(in: container).read(Int.self, forKey: "volume") ?? 0)
/// } catch let error as WormholeError where error.code == .wrongType {
///   print("the volume is not a number: \(error)")
/// }
/// ```
extension WormholeError.Code {
  /// The name is not allowed for a suite.
  public static let invalidSuiteName = Self("invalidSuiteName")
  /// The value stored under the key has a type other than the requested one.
  public static let wrongType = Self("wrongType")
  /// The import is not a property list, is hostile, or is not a dictionary.
  public static let badImport = Self("badImport")
  /// The suite cannot be written in the requested format.
  public static let badExport = Self("badExport")
}

extension WormholeError {
  private static let readingDefaults = "read the defaults"

  /// Whether a suite's file cannot be read as defaults.
  package var isOfDefaults: Bool { action == Self.readingDefaults }

  /// The suite's file cannot be read as defaults, so it is not written either.
  static func damaged(_ value: PlainValue, _ reason: String) -> WormholeError {
    WormholeError(
      .damaged, readingDefaults, path: value.path, reason: reason,
      remedy: "nothing is written over it; " + WormholeError.puttingAside(value.path))
  }

  static func unsupported(_ key: String, _ error: PropertyListError) -> WormholeError {
    var reason = error.reason
    if case .keyPath(let path) = error.position, !path.isEmpty { reason = "at \(path), \(reason)" }
    return WormholeError(
      .unsupportedValue, "set \"\(key)\"", reason: reason,
      remedy: "store what a property list can hold, or its data")
  }
}
