import Foundation
import WormholeTestSupport

@testable import WormholeSystem
@testable import WormholeToolkit

/// A directory of one test, with the item and the place of its copy.
struct TreesScene {
  let place: TemporaryDirectory
  let directory: SharedDescriptor
  let item = FileName("item")
  let staged = FileName("staged")

  init() throws {
    place = try TemporaryDirectory()
    directory = SharedDescriptor(
      try FileDescriptor.open(place.path, [.readOnly, .directory]))
  }

  init(at path: String) throws {
    place = try TemporaryDirectory()
    directory = SharedDescriptor(try FileDescriptor.open(path, [.readOnly, .directory]))
  }

  var at: Int32 { directory.descriptor.rawValue }

  /// Copies the item beside itself.
  func copy(_ settings: TreeCopy = TreeCopy()) throws {
    try settings.copy(item, at: at, to: staged, at: at)
  }

  /// Returns the output of a shell command in the directory.
  @discardableResult
  func shell(_ command: String) throws -> String { try run(command, in: place.path) }

  /// Returns the differences between the copy and the item, as other programs see them.
  func differences() throws -> String {
    // diff does not compare FIFOs; find does.
    let form = "-printf '%P %y %m %s %T@ %U %G %l\\n'"
    return try shell(
      """
      diff -rq --no-dereference item staged 2>&1 | grep -aE 'differ$|^Only in'
      (cd item && find . ! -type s ! -type d \(form) | LC_ALL=C sort) >item.list
      (cd staged && find . ! -type s ! -type d \(form) | LC_ALL=C sort) >staged.list
      diff -a item.list staged.list
      (cd item && find . -type d -printf '%P %m %T@ %U %G\\n' | LC_ALL=C sort) >item.list
      (cd staged && find . -type d -printf '%P %m %T@ %U %G\\n' | LC_ALL=C sort) >staged.list
      diff -a item.list staged.list
      rm item.list staged.list
      """)
  }
}

/// Returns the output of a shell command; its status does not matter.
func run(_ command: String, in directory: String) throws -> String {
  let process = Process()
  let output = Pipe()
  process.executableURL = URL(fileURLWithPath: "/bin/sh")
  process.arguments = ["-c", command]
  process.currentDirectoryURL = URL(fileURLWithPath: directory)
  process.standardOutput = output
  process.standardError = output
  process.standardInput = FileHandle.nullDevice
  try process.run()
  let data = output.fileHandleForReading.readDataToEndOfFile()
  process.waitUntilExit()
  return String(decoding: data, as: UTF8.self)
}
