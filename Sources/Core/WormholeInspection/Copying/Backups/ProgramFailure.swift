import Wormhole
import WormholeSystem
import WormholeToolkit

extension ProgramPair {
  /// Why one of the programs, tar(1) or gzip(1), failed.
  struct Failure: Error {
    let program: String
    /// How it ended; nil if it was not found.
    let end: Termination?
    /// What both programs printed, line by line.
    let lines: [String]
  }
}

extension ProgramPair.Failure {
  /// Whether a sentence names the path of the files, not that of the archive.
  var isOfTar: Bool { program == "tar" && end != nil }

  /// Whether the input of the program is to blame.
  var isOfContent: Bool { errorNumber == nil && isUnderstood }

  /// Whether the program has accepted its arguments: then an error ends it with 2, gzip(1) also
  /// with 1.
  private var isUnderstood: Bool {
    end == .exited(2) || end == .exited(1) && program == "gzip"
  }

  /// The kernel's error that the program met.
  private var errorNumber: Errno? {
    switch end {
    case .killed(Signal.brokenPipe.rawValue): return .brokenPipe
    case .killed(Signal.fileTooLarge.rawValue): return .fileTooLarge
    case .exited:
      let errors: [Errno] = [
        .noSpace, .diskQuotaExceeded, .inputOutput, .fileTooLarge, .readOnlyFileSystem,
        .tooManyOpenFiles, .tooManyOpenFilesInSystem, .badFileDescriptor,
      ]
      let found = errors.first { error in lines.contains { $0.hasSuffix(": \(error)") } }
      // tar(1) does not name the error of a partial write.
      return found ?? (lines.contains { $0.contains(": Wrote only ") } ? .noSpace : nil)
    default: return nil
    }
  }

  /// What the program says, or how it ended.
  var reason: String {
    // The first one: the others follow from it.
    if let line = lines.first { return line }
    switch end {
    case .exited(let status): return "\(program) ended with status \(status)"
    case .killed(let signal): return "\(program) was killed by signal \(signal)"
    case nil: return "the program \(program) is not installed"
    }
  }

  func reported(_ action: String, path: String) -> WormholeError {
    if let errorNumber { return .refused(action, path: path, errorNumber) }
    var remedy: String?
    if end == nil { remedy = "install GNU tar and gzip, in directories that PATH names" }
    if case .exited = end, !isUnderstood { remedy = "install GNU tar, and let PATH find it first" }
    return WormholeError(.inputOutput, action, path: path, reason: reason, remedy: remedy)
  }
}
