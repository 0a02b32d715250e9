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

  @Test("keeps a file that its inbox cannot take, and receives it when what is in the way is gone")
  func obstacle() throws {
    try plant("inbox")
    let (phone, watch) = (try scene.phone(), try scene.watch())
    #expect(try phone.ask("events begin") == "done")
    #expect(try watch.session("file \(scene.file("a.txt", "text"))") == "done")
    try eventually("the phone could not put the file") {
      try !phone.ask("events failure").hasPrefix("0")
    }
    try expectUntouched()
    try FileManager.default.removeItem(atPath: scene.directory.path + "/own/inbox")
    #expect(try phone.await("file").hasPrefix("file a.txt text"))
    #expect(try watch.await("sent") == "sent a.txt -")
  }

  @Test("makes its directories for all members, also if the umask would keep them out")
  func modes() throws {
    let phone = try scene.phone()
    #expect(try phone.session("directory") != "nil")
    let watch = try scene.watch()
    #expect(try watch.session("file \(scene.file("a.txt", "text"))") == "done")
    #expect(try phone.await("file").hasPrefix("file a.txt text"))
    #expect(try watch.await("sent") == "sent a.txt -")
    let own = scene.directory.path + "/own"
    for path in ["inbox", "inbox/phone", "watches", "watches/watch"] {
      let attributes = try FileManager.default.attributesOfItem(atPath: own + "/" + path)
      #expect(attributes[.posixPermissions] as? Int == 0o2770, "\(path)")
    }
  }
}
