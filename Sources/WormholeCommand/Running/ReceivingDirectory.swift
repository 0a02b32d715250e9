import FoundationEssentials
import PeerConnectivity
import SystemCalls

/// Where received files go: under names that are safe and that nothing had before.
struct ReceivingDirectory {
  /// Absolute.
  private let path: String

  /// How many files of one name find a place.
  private static let maximumCopies = 100_000
  /// With room for a number, in the 255 bytes of a file system.
  private static let maximumNameBytes = 200

  /// - Throws: `CommandError` for what is no directory.
  init(_ directory: String) throws {
    path = try WorkingDirectory.absolute(directory, to: "put files into")
    do throws(Errno) {
      guard try fileStatus(path + "/.").kind == .directory else { throw .notDirectory }
    } catch {
      throw CommandError(
        verb: "put files into", object: directory, reason: "\(error)",
        status: error == .accessDenied ? .permission : .inputOutput)
    }
  }

  /// Makes a file the directory's own.
  ///
  /// - Returns: where it is.
  func put(_ file: PeerFile) throws -> String {
    let destination = try reserve(Self.safe(file.name))
    do {
      try file.claim(to: URL(filePath: destination))
    } catch {
      do throws(Errno) {
        try removeFile(destination)
      } catch {
        // An empty file is left; why there is no content is told by the error that is thrown.
      }
      throw error
    }
    return destination
  }

  /// Takes a name by an empty file, which the content then replaces: who comes at the same time gets
  /// another name.
  func reserve(_ name: String) throws -> String {
    let parts = Self.split(name)
    for number in 1...Self.maximumCopies {
      let candidate = number == 1 ? name : "\(parts.stem)-\(number)\(parts.suffix)"
      do throws(Errno) {
        _ = try FileDescriptor.open(
          path + "/" + candidate, [.writeOnly, .create, .exclusive, .noFollow])
        return path + "/" + candidate
      } catch {
        guard error == .alreadyExists else {
          throw CommandError(
            verb: "make", object: path + "/" + candidate, reason: "\(error)",
            status: error == .accessDenied ? .permission : .inputOutput)
        }
      }
    }
    throw CommandError(
      verb: "make", object: path + "/" + name,
      reason: "there are \(Self.maximumCopies) files of this name", status: .inputOutput)
  }

  /// A name that is one component of a path, and neither hidden nor an option to a program.
  static func safe(_ name: String) -> String {
    var safe = String.UnicodeScalarView()
    for scalar in name.unicodeScalars {
      let isHarmless =
        scalar != "/" && scalar.properties.generalCategory != .control
        && scalar.properties.generalCategory != .format
      safe.append(isHarmless ? scalar : "_")
    }
    var text = String(safe)
    if text.isEmpty || text.hasPrefix(".") || text.hasPrefix("-") { text = "_" + text }
    return shortened(text)
  }

  private static func shortened(_ name: String) -> String {
    var (stem, suffix) = split(name)
    if suffix.utf8.count > maximumNameBytes / 2 { (stem, suffix) = (name, "") }
    while stem.utf8.count + suffix.utf8.count > maximumNameBytes {
      stem.unicodeScalars.removeLast()
    }
    return stem + suffix
  }

  /// `a.tar` and `.gz`.
  private static func split(_ name: String) -> (stem: String, suffix: String) {
    guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return (name, "") }
    return (String(name[..<dot]), String(name[dot...]))
  }
}
