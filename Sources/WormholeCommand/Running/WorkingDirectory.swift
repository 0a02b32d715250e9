import SystemCalls

/// The directory that relative paths of the command line begin at.
enum WorkingDirectory {
  /// - Parameter verb: what is to be done with the file, for the error.
  static func absolute(_ file: String, to verb: String) throws -> String {
    guard !file.hasPrefix("/") else { return file }
    do throws(Errno) {
      let directory = try linkTarget("/proc/self/cwd")
      return directory == "/" ? "/" + file : directory + "/" + file
    } catch {
      throw CommandError(
        verb: verb, object: file, reason: "the current directory cannot be found: \(error)",
        status: .inputOutput)
    }
  }
}
