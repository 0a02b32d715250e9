public import AppGroup
import FoundationEssentials
import PropertyLists
import Synchronization

/// Defaults that any number of processes share; source-compatible with `UserDefaults(suiteName:)`.
///
/// Every read sees what any process has written before, without any call. Every write is there for
/// all processes when it returns, survives the death of this one, and changes its key only: what
/// others write to other keys at the same time is kept. `synchronize()`, and `durability: .durable`
/// where a method has it, return when the suite would survive a loss of power, too.
///
/// The methods that UserDefaults has do not throw; what goes wrong reaches `onError`, a getter then
/// goes on with the rest of the search list, and a setter changes nothing. The methods that it does
/// not have (`read`, `write`, `remove`, `update`, …) throw. Those of both kinds may block their
/// thread for the time of a few system calls, and writes for up to ten seconds while another process
/// changes the same suite; tasks use the forms with `async`.
///
/// A suite is one property-list file with exactly its keys, so anybody can read it:
/// `wormhole defaults read` or, with the path of `path()`, `plutil` and Python's `plistlib`.
public final class GroupDefaults: Sendable {
  /// The domain of all programs of the original, which does not exist here.
  public static let globalDomain = "NSGlobalDomain"
  /// The domain of the command line.
  public static let argumentDomain = "NSArgumentDomain"
  /// The domain of what `register(defaults:)` was given.
  public static let registrationDomain = "NSRegistrationDomain"

  /// What is looked through besides the suite itself.
  struct Surroundings: Sendable {
    var volatileDomains: [String: Suite.Contents] = [:]
    var addedSuites: [(name: String, suite: Suite)] = []

    var arguments: Suite.Contents { volatileDomains[GroupDefaults.argumentDomain] ?? [:] }
  }

  /// The name that this object was made with.
  let name: String?
  let place: SuitePlace
  let surroundings: Mutex<Surroundings>
  let reporter = ErrorReporter()
  private let opened: Result<Suite, any Error>

  /// Defaults of a group, in the container of that name.
  ///
  /// A container that cannot be opened is reported to `onError` at every use.
  ///
  /// - Parameter suitename: an App Group identifier such as `group.com.example.cinema`; nil means the
  ///   program's own defaults, as in `standard`.
  /// - Returns: nil, as in the original, for names that stand for another domain, and for "".
  public convenience init?(suiteName suitename: String?) {
    let name = suitename ?? Self.programName
    if SuitePlace.reserved.contains(name) { return nil }
    self.init(name, .groups, Result { try SuitePlace.groups.suite(name) })
  }

  /// The program's own defaults, as in `standard`.
  public convenience init() {
    let name = Self.programName
    self.init(name, .groups, Result { try SuitePlace.groups.suite(name) })
  }

  /// Defaults of a group.
  ///
  /// - Parameter group: an App Group identifier; its container is made where it is missing.
  /// - Throws: `AppGroupError`, as opening the container; `GroupDefaultsError.invalidSuiteName`.
  public convenience init(group: String) throws {
    self.init(group, .groups, .success(try SuitePlace.groups.suite(group)))
  }

  /// Defaults of any container; nothing is touched before they are read or written.
  ///
  /// - Parameters:
  ///   - container: where they are.
  ///   - suite: any string; nil is the container's own suite, which is that of its group. For this
  ///     object, all names of suites are those of suites in this container.
  public convenience init(container: SharedContainer, suite: String? = nil) {
    self.init(suite, .container(container), .success(Suite(suite, in: container)))
  }

  private init(_ name: String?, _ place: SuitePlace, _ opened: Result<Suite, any Error>) {
    self.name = name
    self.place = place
    self.opened = opened
    surroundings = Mutex(
      Surroundings(volatileDomains: [Self.argumentDomain: ArgumentDomain.ofProcess]))
  }

  /// The program's own defaults: those of the group that has the program's name.
  public static let standard = GroupDefaults()

  /// Does nothing: there is nothing in `standard` that would have to be made anew.
  public static func resetStandardUserDefaults() {}

  private static var programName: String {
    let name = ProcessInfo.processInfo.processName
    return name.isEmpty ? "program" : name
  }

  /// Gets what goes wrong in a method that cannot throw; by default it is a line on standard error.
  public var onError: (@Sendable (any Error) -> Void)? {
    get { reporter.handler }
    set { reporter.handler = newValue }
  }

  /// Where the suite's file is, or would be.
  ///
  /// - Throws: `AppGroupError`, as opening the container did.
  public func path() throws -> String { try suite().value.path }

  func suite() throws -> Suite { try opened.get() }

  /// Runs what a source-compatible method does; what it throws is reported.
  func reporting<Result>(_ otherwise: Result, _ body: () throws -> Result) -> Result {
    do {
      return try body()
    } catch {
      reporter.report(error)
      return otherwise
    }
  }
}
