import FoundationEssentials
import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import WormholeFiles

/// A process that sees the mounts of a namespace, in the place of the items.
struct MountedScene {
  let mounts: MountNamespace
  let participant: Participant

  init() throws {
    mounts = try MountNamespace()
    try mounts.run("mkdir items own && chmod 700 own && printf old >items/a")
    // "/proc/PID/root…": the shell in the namespace.
    let shell = mounts.inside.split(separator: "/")[1]
    let asRoot = Program.effectiveUser == 0 ? [] : ["--user", "--preserve-credentials"]
    participant = try Participant(
      program: "nsenter",
      ["--target", "\(shell)", "--mount"] + asRoot
        + [BuiltProgram.path("participant"), mounts.outside + "/own"])
  }

  func path(_ name: String) -> String { mounts.outside + "/items/" + name }
  func names(_ place: String = "items") throws -> String { try mounts.run("ls -A \(place)") }
  func ask(_ kind: String, _ name: String, _ rest: String) throws -> String {
    try participant.ask("\(kind) \(path(name)) \(rest)")
  }
}

@Suite("Items in unusual places", .blocking, .enabled(if: MountNamespace.isPossible))
struct PlacesTests {
  let scene: MountedScene
  var mounts: MountNamespace { scene.mounts }

  init() throws { scene = try MountedScene() }

  @Test("on two file systems are changed in one access")
  func twoFileSystems() throws {
    try mounts.run("mkdir items/t && mount -t tmpfs tmpfs items/t && printf old >items/t/b")
    let both = "writing \(scene.path("a")) writing \(scene.path("t/b"))"
    #expect(try scene.participant.ask(both).hasPrefix("inside "))
    #expect(try scene.participant.ask("put new") == "done")
    #expect(try mounts.run("cat items/t/b") == "old")
    #expect(try scene.participant.ask("leave") == "done")
    #expect(try mounts.run("cat items/a items/t/b") == "oldnew")
    #expect(try scene.names() == "a t" && scene.names("items/t") == "b")
  }

  @Test(
    "that are mount points are refused, and named; their contents are not refused",
    arguments: ["deleting", "replacing", "writing"])
  func mountPoint(kind: String) throws {
    try mounts.run("mkdir items/t && mount -t tmpfs tmpfs items/t && printf old >items/t/b")
    let answer = try scene.ask(kind, "t", kind == "deleting" ? "erase=yes" : "tree=x")
    #expect(answer.hasPrefix("error notAnItem "), "\(answer)")
    #expect(answer.contains(scene.path("t")) && answer.contains("mounted"), "\(answer)")
    #expect(try scene.ask("writing", "t/b", "put=new") == "done")
    #expect(try mounts.run("cat items/t/b") == "new")
    #expect(try scene.names() == "a t" && scene.names("items/t") == "b")
  }

  @Test("with a mount point below them are refused, and it is named")
  func mountBelow() throws {
    try mounts.run("mkdir -p items/d/t && mount -t tmpfs tmpfs items/d/t")
    for kind in ["deleting", "writing"] {
      let answer = try scene.ask(kind, "d", "tree=x")
      #expect(answer.hasPrefix("error notAnItem ") && answer.contains("d/t: "), "\(answer)")
    }
    #expect(try scene.names() == "a d" && scene.names("items/d") == "t")
  }

  @Test("on a read-only file system can be read, by copies too, but not changed")
  func readOnly() throws {
    try mounts.run("mount --bind items items && mount -o remount,bind,ro items")
    #expect(try scene.ask("reading", "a", "read=yes") == "old")
    #expect(try scene.ask("uploading", "a", "read=yes") == "old")
    for kind in ["deleting", "replacing", "moving", "writing"] {
      let answer = try scene.ask(kind, "a", "put=new")
      #expect(answer.hasPrefix("error permissionDenied "), "\(answer)")
      #expect(answer.contains(scene.path("a")) && answer.contains("; "), "\(answer)")
    }
    #expect(try scene.names() == "a")
  }

  // The kernel's path of a directory means another one here, or none.
  @Test("that are reached through another mount namespace's /proc path are changed there")
  func otherNamespace() throws {
    try mounts.run("mount -t tmpfs -o mode=700 tmpfs items && printf old >items/a")
    let url = URL(filePath: mounts.inside + "/items/a")
    try FileCoordinator().coordinate(writingItemAt: url) {
      #expect(try ItemText.read($0.path) == "old")
      try ItemText.write("new", to: $0.path)
    }
    #expect(try mounts.run("cat items/a") == "new" && scene.names() == "a")
    #expect(try ItemText.read(mounts.outside + "/items/a") == "old")
    #expect(try RaceScene.names(mounts.outside + "/items") == ["a"])
  }

  @Test(
    "with planted hidden directories beside them are refused, and the directories are named")
  func planted() throws {
    try mounts.run("chmod 1777 items")
    for mode in ["777", "705"] {
      try mounts.run("mkdir items/.coordination-a && chmod \(mode) items/.coordination-a")
      let answer = try scene.ask("writing", "a", "put=new")
      #expect(answer.hasPrefix("error unsafe "), "\(answer)")
      #expect(answer.contains("rm -r '\(scene.path(".coordination-a"))'"), "\(answer)")
      try mounts.run("rmdir items/.coordination-a")
    }
    try mounts.run("printf x >target; ln -s ../target items/.coordination-a")
    let answer = try scene.ask("writing", "a", "put=new")
    #expect(answer.hasPrefix("error "), "\(answer)")
    #expect(try mounts.run("cat target items/a") == "xold")
    try mounts.run("rm items/.coordination-a")
    #expect(try scene.names() == "a")
  }
}

/// A user without the superuser's rights.
enum Stranger {
  static let become = ["--reuid=65534", "--regid=65534", "--clear-groups"]

  /// A place that others can enter, too, because TMPDIR may be this user's alone. Nil if this
  /// process cannot become another user.
  static let place: String? = {
    do {
      guard Program.effectiveUser == 0 else {
        throw NeverHappened(what: "only the superuser can become others")
      }
      let places = [Program.environment("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm"]
      let found = try places.compactMap(\.self).first { place in
        let look = try ChildProcess("setpriv", become + ["test", "-x", place])
        return try look.wait(until: soon) == .exited(0)
      }
      guard let found else { throw NeverHappened(what: "others can enter one of \(places)") }
      return found
    } catch {
      print("skipped: \(error)")
      return nil
    }
  }()
}

/// The superuser may do everything, so these tests run as other users.
@Suite("Items of other users", .blocking, .enabled(if: Stranger.place != nil))
struct OtherUsersTests {
  private func scene() throws -> RaceScene { try RaceScene(under: Stranger.place) }

  /// Starts a participant without the superuser's rights, which may have no access to the build
  /// directory.
  private func stranger(_ scene: RaceScene) throws -> Participant {
    let program = scene.directory.path + "/participant"
    try scene.directory.shell("cp '\(BuiltProgram.path("participant"))' .; chmod 755 participant")
    let own = scene.directory.path + "/own"
    return try Participant(
      program: "setpriv", Stranger.become + [program, own], environment: ["TMPDIR=\(own)"])
  }

  @Test(
    "in an unwritable directory can be read, but not changed, and nothing is left")
  func readOnlyDirectory() throws {
    let scene = try scene()
    try scene.put("old", "a")
    try scene.directory.shell(
      "mkdir -m 700 own; chown 65534:65534 own; chmod 755 . items; chmod 644 items/a")
    let stranger = try stranger(scene)
    #expect(try stranger.ask("reading \(scene.path("a")) read=yes") == "old")
    #expect(try stranger.ask("uploading \(scene.path("a")) read=yes") == "old")
    for kind in ["writing", "deleting", "replacing", "moving"] {
      let answer = try stranger.ask("\(kind) \(scene.path("a")) put=new")
      #expect(answer.hasPrefix("error permissionDenied "), "\(answer)")
      #expect(answer.contains(scene.path("a")), "\(answer)")
    }
    try scene.expectOnly(["a"])
  }

  @Test(
    "of unauthorized users are protected: a planted site of theirs is refused")
  func plantedByStranger() throws {
    let scene = try scene()
    try scene.put("old", "a")
    try scene.directory.shell(
      "chmod 1777 items; mkdir -m 700 items/.coordination-a; chown 65533 items/.coordination-a; "
        + "mkdir -m 700 own; chown 65534 own items/a; chmod 755 .")
    let answer = try stranger(scene).ask("writing \(scene.path("a")) put=new")
    #expect(answer.hasPrefix("error "), "\(answer)")
    #expect(
      answer.hasPrefix("error unsafe ") || answer.hasPrefix("error permissionDenied "), "\(answer)")
    #expect(try scene.text("a") == "old")
  }

  // the owner                  the superuser
  // inside
  //                            waits, naming the owner
  // leaves
  //                            changes it; the owner still can
  @Test(
    "are awaited and changed by the superuser, who leaves nothing that blocks the owner")
  func superuser() throws {
    let scene = try scene()
    try scene.put("old", "a")
    try scene.directory.shell(
      "chown 65534:65534 items items/a; mkdir -m 700 own; chown 65534 own; chmod 755 .")
    let owner = try stranger(scene)
    #expect(try owner.ask("writing \(scene.path("a"))").hasPrefix("inside "))
    let error = try #require(throws: WormholeError.self) {
      try FileCoordinator().coordinate(writingItemAt: scene.url("a"), until: .now) { _ in }
    }
    #expect(error.code == .timedOut)
    #expect(try owner.ask("leave") == "done")
    try FileCoordinator().coordinate(writingItemAt: scene.url("a")) {
      try ItemText.write("superuser", to: $0.path)
    }
    #expect(try owner.ask("writing \(scene.path("a")) put=owner") == "done")
    #expect(try scene.text("a") == "owner")
    try scene.expectOnly(["a"])
  }

  // Elsewhere its site would stay for a moment (`KeptSites`), and the owner cannot open it.
  @Test("can be changed by their owner just after the superuser has changed them again and again")
  func superuserOften() throws {
    let scene = try scene()
    try scene.put("old", "a")
    try scene.directory.shell(
      "chown 65534:65534 items items/a; mkdir -m 700 own; chown 65534 own; chmod 755 .")
    let owner = try stranger(scene)
    for number in 0..<20 {
      try FileCoordinator().coordinate(writingItemAt: scene.url("a")) {
        try ItemText.write("\(number)", to: $0.path)
      }
    }
    #expect(try owner.ask("writing \(scene.path("a")) append=+") == "done")
    #expect(try scene.text("a") == "19+")
    try scene.expectOnly(["a"])
  }
}
