import Synchronization
import WormholeSystem

/// The programs that were built together with the tests.
package enum BuiltProgram {
  /// The path of a program as the tests start it: those that they start thousands of times are copies
  /// that start in a third of the time (see `QuickLink`), the others are as the build left them.
  ///
  /// - Throws: `Errno`, if the build has no such file.
  package static func path(_ name: String) throws -> String {
    guard let program = QuickLink.programs[name] else { return try asBuilt(name) }
    let built = try asBuilt(program.built)
    return try links.withLock { links in
      if let made = links[name] { return made }
      let link = QuickLink(name, program, built: built)
      let path = try link.isFresh() ? link.path : link.make() ?? built
      links[name] = path
      return path
    }
  }

  /// The folder of the modules that a compiler imports. Swift Build puts them beside the programs.
  package static func modules() throws -> String {
    let folder = try asBuilt("Modules")
    return try exists(folder, at: Directory.current) ? folder : asBuilt("")
  }

  /// The path of anything in the folder of the build: "wormhole", or "" for the folder itself, with a slash.
  package static func asBuilt(_ name: String) throws -> String {
    let tests = try Program.executablePath()
    return tests[..<(tests.lastIndex(of: "/") ?? tests.startIndex)] + "/" + name
  }

  /// The folders for PATH in which a shell finds the programs by their names.
  package static func searchPath() throws -> String {
    let quick = try path("wormhole")
    return try quick[..<(quick.lastIndex(of: "/") ?? quick.startIndex)] + ":" + asBuilt("")
  }

  private static let links = Mutex<[String: String]>([:])
}
