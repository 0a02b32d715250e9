package import AppGroup
import SystemCalls

/// Why presenters could not be asked, or what one of them said; a sentence.
struct PresenterError: Error, Sendable, Hashable, CustomStringConvertible {
  let description: String

  /// A presenter of another process signalled an error, so the access does not begin.
  static func refused(_ presenter: PresenterDescription, _ reason: String) -> PresenterError {
    PresenterError(
      description: "cannot begin the access: \(presenter) refused: \(reason)")
  }

  /// Some presenters did not answer; the access goes on without them.
  static func silent(_ presenters: [PresenterDescription]) -> PresenterError {
    let names = presenters.map(\.description).joined(separator: "; ")
    return PresenterError(
      description: "went on without an answer of \(names); it may not notice in time")
  }

  static func cannotRegister(_ path: String, _ error: any Error) -> PresenterError {
    PresenterError(
      description:
        "cannot register a presenter (\(path)): so that other programs can ask it, it is "
        + "entered in a container of this user's, and: \(error); XDG_DATA_HOME names another place "
        + "for such containers")
  }

  static func cannotFind(_ path: String, _ error: Errno) -> PresenterError {
    PresenterError(
      description: "cannot find the presented item (\(path)): \(error); look at the directories "
        + "above it (ls -ld)")
  }
}

/// Which presenter did not answer, and what its process was doing.
package struct PresenterDescription: Sendable, Hashable, CustomStringConvertible {
  package let processID: Int32
  package let program: String
  package let state: PresenceMember.State
  package let path: String

  /// "the presenter of /a/b in process 4711 (editor), suspended".
  package var description: String {
    "the presenter of \(path) in process \(processID) (\(program)), \(state.rawValue)"
  }
}
