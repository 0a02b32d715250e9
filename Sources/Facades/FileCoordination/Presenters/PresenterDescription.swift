package import AppGroup

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
