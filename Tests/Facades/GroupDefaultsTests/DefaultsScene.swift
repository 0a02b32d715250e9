import GroupDefaults
import Synchronization
import Testing
import Wormhole
import WormholeTestSupport

/// A container of one test, its defaults, and the errors that they report.
final class DefaultsScene: Sendable {
  let directory: TemporaryDirectory
  let container: SharedContainer
  let defaults: GroupDefaults
  private let errors = Mutex<[any Error]>([])

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
    defaults = GroupDefaults(in: container)
    defaults.onError = { [weak self] error in self?.errors.withLock { $0.append(error) } }
  }

  /// Returns the errors since the last call, as sentences.
  func reported() -> [String] {
    errors.withLock { errors in
      defer { errors = [] }
      return errors.map { "\($0)" }
    }
  }

  func participant() throws -> Participant { try Participant(directory.path) }

  /// Frees the suite of its content: puts it into the quarantine or, on etcd, which has none, removes it.
  ///
  /// - Returns: Where it is now; nil on etcd.
  func putAside() throws -> String? {
    guard TestEngine.current == .directory else {
      #expect(throws: WormholeError.self) { try defaults.quarantine() }
      #expect(try container.own.value("defaults").remove())
      return nil
    }
    let aside = try defaults.quarantine()
    #expect(aside != nil)
    return aside
  }

  var file: String { get throws { try defaults.path() } }
}
