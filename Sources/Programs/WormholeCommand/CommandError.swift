import AppGroup
import GroupDefaults
import PeerConnectivity

/// Why a command could not do its work, with the status that tells scripts so.
struct CommandError: Error, Equatable, CustomStringConvertible {
  /// The action: "read", "publish".
  let verb: String
  /// The object of the action, as the user named it.
  let object: String
  let reason: String
  let status: ExitStatus

  /// `cannot read seats: the file is damaged`; the program puts its name before it.
  var description: String { "cannot \(verb) \(object): \(reason)" }
}

/// Nobody reads standard output any more, as after the end of `head`: there is nobody to tell.
struct OutputIsClosed: Error {}

/// The sentence in which the program reports an error.
///
/// The remedies of the libraries' errors name methods. For content that cannot be read, the program
/// names `wormhole doctor` instead, which prints the command that repairs it.
func sentence(of error: any Error) -> String {
  switch error {
  case let error as AppGroupError
  where [.damaged, .notAValue].contains(error.code)
    || error.code == .tooLarge && error.errorNumber == nil:
    "\(error)".replacing(remedy: error.remedy, by: "'wormhole doctor' shows how to repair it")
  case let error as GroupDefaultsError where error.code == .damaged:
    "\(error)".replacing(
      remedy: error.remedy,
      by: "nothing is written over it; 'wormhole doctor' shows how to put it aside")
  case let error as PeerError where error.code == .damaged:
    "\(error)".replacing(remedy: error.remedy, by: "'wormhole doctor' shows how to put it aside")
  default: "\(error)"
  }
}

extension String {
  /// An error's sentence ends with its remedy, if it has one.
  fileprivate func replacing(remedy: String?, by ours: String) -> String {
    guard let remedy, hasSuffix(remedy) else { return self }
    return dropLast(remedy.count) + ours
  }
}

extension AppGroupError {
  /// The reason, for a sentence that has already said that something cannot be read.
  var briefReason: String {
    let prefix = "cannot read the property list: "
    return reason.hasPrefix(prefix) ? String(reason.dropFirst(prefix.count)) : reason
  }
}
