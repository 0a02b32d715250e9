import WormholeTestSupport

@testable import WormholeSystem

/// What tests of the change monitor do in their directory.
protocol MonitorScene {
  var directory: TemporaryDirectory { get }
  var monitor: ChangeMonitor { get }
}

extension MonitorScene {
  func make(_ name: String) throws -> String {
    try makeDirectory(directory.path + "/" + name)
    return directory.path + "/" + name
  }

  func touch(_ directory: String, _ name: String = "file") throws {
    try FileDescriptor.open(directory + "/" + name, [.writeOnly, .create]).close()
  }

  func move(_ old: String, to new: String) throws {
    try rename(
      directory.path + "/" + old, at: Directory.current, to: directory.path + "/" + new,
      at: Directory.current)
  }

  func isHeard(_ path: String, _ name: String, _ signals: Heard<Int>) throws {
    let before = signals.all.count
    try touch(path, name)
    try eventually("\(name) is reported") { signals.all.count > before }
  }
}
