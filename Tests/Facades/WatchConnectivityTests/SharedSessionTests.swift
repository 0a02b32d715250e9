import Foundation
import Testing
import WormholeTestSupport

/// Other members of the container's Unix group can put anything in the place of a directory.
@Suite("A session in a container of several users", .blocking)
struct SharedSessionTests {
  let scene: SessionScene
  let outside: TemporaryDirectory

  init() throws {
    scene = try SessionScene(isShared: true)
    outside = try TemporaryDirectory()
    for name in ["phone", "watch", "none"] {
      let place = outside.path + "/" + name
      try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: false)
      try Files.write("kept", to: place + "/file")
    }
  }

  /// Puts a link to the directory outside in the place of a directory of the container.
  private func plant(_ name: String) throws {
    let own = scene.directory.path + "/own"
    try FileManager.default.createDirectory(atPath: own, withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: own + "/" + name, withDestinationPath: outside.path)
  }

  private func expectUntouched() throws {
    let names = try FileManager.default.contentsOfDirectory(atPath: outside.path)
    #expect(names.sorted() == ["none", "phone", "watch"])
    for name in names {
      let place = outside.path + "/" + name
      #expect(try FileManager.default.contentsOfDirectory(atPath: place) == ["file"])
    }
  }

  @Test("removes and makes nothing through a link in the place of its directories")
  func planted() throws {
    try plant("watches")
    try plant("inbox")
    let phone = try scene.phone()
    #expect(try phone.session("directory") == "nil")
    try expectUntouched()
  }
}
