import FoundationEssentials
import WormholeSystem

/// A package of a reader that uses this one's products: as `swift build` makes it, but with the
/// modules and objects that were built beside the tests.
///
/// What it builds lies in its directory, and starts there by its path.
package struct ReaderPackage {
  package typealias Outcome = CompilerRun.Outcome

  package struct Failure: Error { package let said: String }

  private let directory: String

  /// - Parameter directory: The place of what is built, and of temporary files.
  package init(directory: String) { self.directory = directory }

  /// Checks files of one module, without building anything.
  ///
  /// - Parameters:
  ///   - sources: Their names without ".swift", and their texts.
  ///   - languageMode: That of Swift 5 or Swift 6.
  package func check(_ sources: [String: String], languageMode: String = "6") throws -> Outcome {
    for (name, source) in sources { try ItemText.write(source, to: "\(directory)/\(name).swift") }
    let files = sources.keys.sorted().map { "\(directory)/\($0).swift" }
    // With the feature that asks most of an example's imports, and that Swift 7 enables.
    let mode = ["-typecheck", "-parse-as-library", "-wmo", "-enable-upcoming-feature"]
    return try run(
      try Self.compiler("Examples", languageMode) + mode + ["MemberImportVisibility"] + files)
  }

  /// Builds a program of one file. A warning fails, as an error does.
  ///
  /// - Parameters:
  ///   - name: The name of the program and of its module.
  ///   - isWhole: Whether it is linked; otherwise it is only checked.
  ///   - isArchived: Whether it is linked with a static archive of the library's objects.
  package func build(
    _ source: String, as name: String, isWhole: Bool = true, isArchived: Bool = false
  ) throws -> Outcome {
    let hasMain = source.contains("@main")
    let folder = "\(directory)/\(name)-sources"
    try makeDirectory(folder)
    // A reader's file name: a file with `@main` is any but main.swift.
    let file = "\(folder)/\(hasMain ? name : "main").swift"
    try ItemText.write(source, to: file)
    let mode = ["-warnings-as-errors"] + (hasMain ? ["-parse-as-library"] : [])
    guard isWhole else {
      return try run(try Self.compiler(name) + ["-typecheck", file] + mode)
    }
    return try link([file], as: name, mode, isArchived: isArchived)
  }

  /// Builds a program of files as they lie in a folder, one of which is main.swift. A warning fails, unless the
  /// code is somebody else's.
  ///
  /// - Parameters:
  ///   - name: The name of the program and of its module.
  ///   - options: More words for the compiler, in whose place it would be told that a warning is an error.
  package func buildProgram(
    _ name: String, of folder: String, languageMode: String = "6", options: [String]? = nil
  ) throws -> Outcome {
    try link(
      try Self.sources(in: folder), as: name, options ?? ["-warnings-as-errors"],
      languageMode: languageMode)
  }

  /// Builds a module of one file, which programs find with `options`.
  ///
  /// - Returns: Those options.
  package func buildModule(_ name: String, of file: String) throws -> [String] {
    let object = "\(directory)/\(name).o"
    let outcome = try run([
      "swiftc", "-swift-version", "5", "-module-name", name, "-parse-as-library", "-emit-object",
      "-wmo", file, "-o", object, "-emit-module-path", "\(directory)/\(name).swiftmodule",
    ])
    guard outcome.isBuilt else { throw Failure(said: outcome.said) }
    return ["-I", directory, object]
  }

  /// Builds a program that runs the tests of the files in a folder, as `swift test` does.
  ///
  /// It succeeds if they pass, and finds the programs of the package, because it lies beside them.
  ///
  /// - Parameter name: The name of the tests' module, and of the program.
  package func buildTests(_ name: String, of folder: String) throws -> Outcome {
    let runner = directory + "/runner.swift"
    try ItemText.write(
      """
      import Testing
      @main struct Runner {
        static func main() async { await Testing.__swiftPMEntryPoint() as Never }
      }

      """, to: runner)
    return try link(
      [runner] + Self.sources(in: folder), as: name, ["-warnings-as-errors", "-parse-as-library"])
  }

  /// Runs one of its programs to its end.
  ///
  /// - Parameter environment: Variables that it gets besides this process's.
  package func run(_ name: String, environment: [String] = []) throws -> Outcome {
    try CompilerRun.run(["\(directory)/\(name)"], in: directory, environment: environment)
  }

  private static func sources(in folder: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
      .filter { $0.hasSuffix(".swift") }.map { folder + "/" + $0 }
  }

  /// The words of every call of the compiler: the library's modules are found as they were built.
  private static func compiler(_ module: String, _ languageMode: String = "6") throws -> [String] {
    [
      "swiftc", "-swift-version", languageMode, "-module-name", module,
      "-I", try BuiltProgram.modules(),
      "-I", Checkout.path("Sources/Core/WormholeShims"),
    ]
  }

  /// Compiles files, and links them with the library.
  private func link(
    _ files: [String], as name: String, _ mode: [String], languageMode: String = "6",
    isArchived: Bool = false
  ) throws -> Outcome {
    let objects = try Self.objects()
    return try run(
      try Self.compiler(name, languageMode) + files + mode
        + ["-Onone", "-use-ld=lld", "-o", "\(directory)/\(name)"]
        + (isArchived ? [try archive(objects)] : objects))
  }

  /// The objects of the library, of sources that are there: a build keeps the objects of those that
  /// were moved or renamed. Swift Build makes one of a module.
  private static func objects() throws -> [String] {
    let built = try BuiltProgram.asBuilt("")
    var objects: [String] = []
    for group in ["Sources/Core", "Sources/Facades"] {
      for path in try FileManager.default.subpathsOfDirectory(atPath: Checkout.path(group))
      where path.hasSuffix(".swift") && !path.hasPrefix("WormholeElsewhere/") {
        let parts = path.split(separator: "/")
        let module = built + parts[0] + ".o"
        objects.append(
          try exists(module, at: Directory.current)
            ? module : built + parts[0] + ".build/" + parts[parts.count - 1] + ".o")
      }
    }
    return Set(objects).sorted()
  }

  private func archive(_ objects: [String]) throws -> String {
    let path = directory + "/library.a"
    let outcome = try run(["ar", "rcs", path] + objects)
    guard outcome.isBuilt else { throw Failure(said: outcome.said) }
    return path
  }

  private func run(_ words: [String]) throws -> Outcome {
    try CompilerRun.run(words, in: directory)
  }
}
