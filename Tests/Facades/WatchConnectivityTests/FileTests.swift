import Testing
import WormholeTestSupport

@Suite("A transferred file", .blocking, .bothEngines)
struct FileTests {
  @Test("arrives with its name, content and metadata; a moved file stays, others are deleted")
  func arrives() throws {
    let scene = try SessionScene()
    let phone = try scene.phone()
    let path = try scene.file("code.png", "picture")
    let kept = scene.directory.path + "/kept.png"
    #expect(try phone.session("file \(path) qr=7") == "done")
    #expect(try phone.session("file \(path) moveTo=\(kept)") == "done")
    #expect(try phone.session("files") == "code.png code.png")
    let watch = try scene.watch()
    let first = try watch.await("file")
    #expect(first.hasPrefix("file code.png picture qr=7 at /"))
    let place = String(first.split(separator: " ").last ?? "")
    #expect(try watch.await("file code.png picture moveTo").contains("code.png"))
    #expect(try phone.await("sent") == "sent code.png -")
    #expect(try phone.await("sent") == "sent code.png -")
    #expect(try Files.read(kept) == "picture")
    #expect(try Files.read(path) == "picture")
    try eventually("what was not moved is gone") { !Files.exists(place) }
    #expect(try phone.session("files") == "")
  }

  @Test("survives its sender, which gets its outcome at the next activation")
  func nextLaunch() throws {
    let scene = try SessionScene()
    let path = try scene.file("a.txt", "text")
    do {
      let watch = try scene.watch()
      #expect(try watch.session("file \(path)") == "done")
      try watch.end()
    }
    let phone = try scene.phone()
    // The sender's next process copies the content if the first one had no time to.
    let watch = try scene.watch()
    #expect(try phone.await("file").hasPrefix("file a.txt text  at"))
    #expect(try watch.await("sent") == "sent a.txt -")
  }

  @Test(
    "that cannot be read, or has no delegate method, fails with a reason; one can be cancelled")
  func fails() throws {
    let scene = try SessionScene()
    let phone = try scene.phone()
    #expect(try phone.session("file \(scene.directory.path)/missing") == "done")
    #expect(try phone.await("sent") == "sent missing 7013")
    #expect(try phone.session("file \(scene.directory.path)") == "done")
    #expect(try phone.await("sent").hasSuffix(" 7013"))
    let path = try scene.file("b.txt", "text")
    #expect(try phone.session("file \(path)") == "done")
    #expect(try phone.session("file-cancel") == "done")
    #expect(try phone.session("files") == "")
    #expect(try phone.session("file \(path)") == "done")
    let watch = try scene.watch("watch", "bare")
    #expect(try phone.await("sent") == "sent b.txt 7014")
    #expect(try !phone.story().contains("sent"))
    withExtendedLifetime(watch) {}
  }
}
