import WormholeSystem

/// A copy of a built program that starts quickly: the same objects, linked with the static libraries of
/// Swift, as a released program is.
///
/// A program as built takes two thirds of its start to load fifteen libraries and to look thousands of
/// names up in them, and the tests start programs seven thousand times. Tests of how a program is
/// loaded, or packed, use `BuiltProgram.asBuilt`.
///
/// The copy stays in the folder of the build until the program is built again.
struct QuickLink {
  struct BuiltFrom {
    /// The name of the program in the folder of the build.
    let built: String
    /// The module whose `main` it is.
    let module: String
    /// Whether it uses more of Foundation than FoundationEssentials.
    let hasFoundation: Bool
  }

  static let programs = [
    "wormhole": BuiltFrom(
      built: "wormhole", module: "WormholeCommand", hasFoundation: false),
    "participant": BuiltFrom(
      built: "WormholeParticipant", module: "WormholeParticipant", hasFoundation: true),
  ]

  private static let foundation = [
    "Foundation", "CoreFoundation", "FoundationInternationalization", "_FoundationICU",
  ]
  private static let standard = [
    "FoundationEssentials", "_FoundationCShims", "_FoundationCollections", "dispatch",
    "BlocksRuntime", "swiftDispatch", "swiftSynchronization", "swiftObservation",
    "swift_StringProcessing", "swift_RegexParser", "swiftSwiftOnoneSupport", "swiftGlibc",
    "swift_Concurrency", "swift_Builtin_float", "swiftCore",
  ]

  private let name: String
  private let program: BuiltFrom
  private let built: String
  private let folder: String
  let path: String

  /// - Parameter built: The program's path in the folder of the build.
  init(_ name: String, _ program: BuiltFrom, built: String) {
    self.name = name
    self.program = program
    self.built = built
    let end = built.lastIndex(of: "/") ?? built.startIndex
    folder = built[..<end] + "/quick"
    path = folder + "/" + name
  }

  /// Returns whether there is a copy that was made after the program.
  func isFresh() throws -> Bool {
    guard try exists(path, at: Directory.current) else { return false }
    let (old, new) = (try fileStatus(built), try fileStatus(path))
    return (new.modifiedSeconds, new.modifiedNanoseconds)
      > (old.modifiedSeconds, old.modifiedNanoseconds)
  }

  /// Links the copy.
  ///
  /// - Returns: Its path; nil where that cannot be done, for example without the static libraries.
  func make() throws -> String? {
    // Some tests start the programs as another user.
    if try !exists(folder, at: Directory.current) { try makeDirectory(folder, mode: 0o755) }
    // Another run of tests may do the same: the last one to rename it wins.
    let new = "\(path).\(Program.processID)"
    guard let words = try words(new) else { return nil }
    let outcome = try CompilerRun.run(words, in: TemporaryDirectory.ofRun())
    guard outcome.isBuilt else {
      print("\(built) is started as built: \(outcome.said)")
      return nil
    }
    try rename(new, at: Directory.current, to: path, at: Directory.current)
    return path
  }

  /// The words of the linker's call; nil where the parts of it are unknown.
  private func words(_ output: String) throws -> [String]? {
    let target = try CompilerRun.run(
      ["swiftc", "-print-target-info"], in: TemporaryDirectory.ofRun()
    ).said
    guard let objects = try ItemText.read(built + ".product/Objects.LinkFileList"),
      let resources = Self.value("runtimeResourcePath", in: target),
      let machine = Self.value("arch", in: target)
    else { return nil }
    let libraries = resources + "_static/linux"
    // These objects use the library for tests, which has no static form, and the program needs few of them.
    let all = objects.split(separator: "\n").map(String.init)
    let support = all.filter { $0.contains("/WormholeTestSupport.build/") }
    let names = (program.hasFoundation ? Self.foundation : []) + Self.standard
    return [
      resources.dropLast("lib/swift".count) + "bin/clang", "-fuse-ld=lld", "-no-pie", "-o", output,
      "-Wl,--defsym=main=\(program.module)_main", "-Wl,--gc-sections", "-Wl,--strip-all",
      "\(libraries)/\(machine)/swiftrt.o",
    ] + all.filter { !support.contains($0) } + ["-Wl,--start-lib"] + support + [
      "-Wl,--end-lib", "-L\(libraries)",
    ]
      + ["-Wl,--start-group"] + names.map { "-l" + $0 } + ["-Wl,--end-group"]
      + ["-ldl", "-lpthread", "-Wl,-Bstatic", "-lstdc++", "-Wl,-Bdynamic", "-lm"]
  }

  /// The text of a key, in JSON with one key on a line.
  private static func value(_ key: String, in json: String) -> String? {
    let line = json.split(separator: "\n").first { $0.contains("\"\(key)\": \"") }
    return line?.split(separator: "\"").dropFirst(3).first.map(String.init)
  }
}
