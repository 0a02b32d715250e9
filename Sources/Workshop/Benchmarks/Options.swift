import SystemCalls

/// The options of the command line.
struct Options {
  struct Misuse: Error, CustomStringConvertible {
    let description: String
  }

  /// The directory of the measurement; its file system decides most of the figures.
  var directory: String
  /// The rows to measure; empty means all.
  var only: [String] = []
  var asJSON = false
  /// Fewer rounds and names, to see that everything works.
  var isQuick = false

  static let usage = """
    usage: benchmarks [--directory DIR] [--only NAME,…] [--json] [--quick]
    names: \(RowGroup.all.map(\.name).joined(separator: ", "))
    Each row is measured alternately with its floor, in the same directory. --directory /dev/shm
    measures on tmpfs.
    """

  init(_ arguments: [String]) throws(Misuse) {
    directory = Self.defaultDirectory
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      switch argument {
      case "--json": asJSON = true
      case "--quick": isQuick = true
      case "--directory": directory = try Self.value(of: argument, &rest)
      case "--only":
        only = try Self.value(of: argument, &rest).split(separator: ",").map(String.init)
      case "--help", "-h":
        print(Self.usage)
        Program.exit(0)
      default: throw Misuse(description: "unknown argument \"\(argument)\"\n\(Self.usage)")
      }
    }
    let names = RowGroup.all.map(\.name)
    if let unknown = only.first(where: { !names.contains($0) }) {
      throw Misuse(description: "no row is called \"\(unknown)\"\n\(Self.usage)")
    }
  }

  private static func value(
    of option: String, _ rest: inout ArraySlice<String>
  ) throws(Misuse) -> String {
    guard let value = rest.popFirst() else {
      throw Misuse(description: "\(option) needs a value\n\(usage)")
    }
    return value
  }

  // The build directory lies on a real disk, /tmp possibly not.
  private static var defaultDirectory: String {
    do throws(Errno) {
      if try fileStatus(".build").kind == .directory { return ".build" }
    } catch {
      // The program was not run in the package's directory.
      return Program.environment("TMPDIR") ?? "/tmp"
    }
    return Program.environment("TMPDIR") ?? "/tmp"
  }
}
