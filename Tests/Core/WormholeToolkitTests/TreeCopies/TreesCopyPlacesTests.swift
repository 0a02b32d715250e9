import Testing
import WormholeTestSupport

@testable import WormholeSystem
@testable import WormholeToolkit

@Suite("The copy of an item, by place and user", .blocking)
struct TreesCopyPlacesTests {
  /// File systems whose files can share content, by the command that creates one.
  private static let sharing = ["mkfs.xfs -q -m reflink=1", "mkfs.btrfs -q"]

  @Test("shares content if the file system can, and takes no room", arguments: sharing)
  func reflinks(_ making: String) throws {
    let program = making.prefix { $0 != " " }
    let disk = "truncate -s 400M disk && \(making) disk && mkdir on && mount -o loop disk on"
    if let obstacle = MountNamespace.obstacle(to: "command -v \(program) && \(disk)") {
      return print("skipped: no \(program) here: \(obstacle)")
    }
    let mounts = try MountNamespace()
    try mounts.run(disk)
    try mounts.run(
      "mkdir on/item && head -c 60000000 /dev/urandom >on/item/a && cp on/item/a on/item/b && sync")
    let before = try used(mounts)
    let scene = try TreesScene(at: mounts.inside + "/on")
    try scene.copy()
    try mounts.run("sync && diff -r on/item on/staged")
    #expect(try used(mounts) - before < 1_000)
    // Later changes are not shared.
    try mounts.run("echo hello >on/staged/a && ! cmp -s on/item/a on/staged/a")
  }

  private func used(_ mounts: MountNamespace) throws -> Int {
    let kilobytes = try mounts.run("df -k --output=used on | tail -1").filter(\.isNumber)
    return try #require(Int(kilobytes))
  }

  @Test(
    "reaches another file system, by copy and by link",
    arguments: [
      TreeCopy.Mode.copy, .link,
    ])
  func otherFileSystem(_ mode: TreeCopy.Mode) throws {
    if let obstacle = MountNamespace.obstacle(to: "mount -t tmpfs tmpfs .") {
      return print("skipped: no mounts here: \(obstacle)")
    }
    let mounts = try MountNamespace()
    try mounts.run(
      """
      mkdir on && mount -t tmpfs tmpfs on && mkdir item && head -c 20000000 /dev/urandom >item/a \
      && echo b >item/b && ln -s b item/c && mkfifo item/d
      """)
    let scene = try TreesScene(at: mounts.inside)
    let other = try FileDescriptor.open(mounts.inside + "/on", [.readOnly, .directory])
    try TreeCopy(mode: mode).copy(
      scene.item, at: scene.at, to: scene.staged, at: other.rawValue)
    try mounts.run("diff -q item/a on/staged/a && cat on/staged/c && test -p on/staged/d")
  }

  @Test("by links is the same files under second names, or copies if that is refused")
  func links() throws {
    let scene = try TreesScene()
    try scene.shell("mkdir -p item/a; echo b >item/a/b; ln -s b item/a/c; chmod 750 item/a")
    let shared = "stat -c %i item/a/b item/a/c staged/a/b staged/a/c | sort | uniq -d | wc -l"
    try scene.copy(TreeCopy(mode: .link))
    #expect(try scene.shell(shared) == "2\n")
    #expect(try scene.shell("stat -c %a staged/a; rm -r staged") == "750\n")
    #if DEBUG
      for error in [Errno.notPermitted, .tooManyNames, .crossesDevices] {
        let plan = Faults.Plan { call, _ in call == .linkat ? .fail(error) : .proceed }
        try Faults.$plan.withValue(plan) { try scene.copy(TreeCopy(mode: .link)) }
        #expect(try scene.shell(shared) == "0\n")
        let differences = try scene.differences()
        #expect(differences == "")
        try scene.shell("rm -r staged")
      }
    #endif
  }

  @Test("by another user belongs to that user, and grants nobody the owner's rights")
  func otherUser() throws {
    guard Program.effectiveUser == 0 else { return print("skipped: needs a second user") }
    let scene = try TreesScene()
    try scene.shell(
      """
      chmod 777 .; mkdir item; echo a >item/a; echo b >item/b; ln -s a item/c
      chown -hR 12345:12345 item; chmod 4755 item/a; chmod 2755 item/b item
      """)
    try asNobody { try scene.copy() }
    let listed = try scene.shell("find staged -printf '%P %U %m\\n' | LC_ALL=C sort")
    #expect(listed == " 65534 755\na 65534 755\nb 65534 755\nc 65534 777\n")
    let unreadable = try TreesScene()
    try unreadable.shell("chmod 777 .; mkdir item; echo a >item/a; chmod 600 item/a")
    let error = try #require(throws: TreeError.self) { try asNobody { try unreadable.copy() } }
    #expect(error.description == "cannot copy item/a: Permission denied")
  }

  @Test("has the item's access lists, and not those that its place would give it")
  func accessLists() throws {
    let scene = try TreesScene()
    // user::rwx, user:4711:rwx, group::r-x, mask::rwx, other::r-x.
    let entries: [(UInt16, UInt16, UInt32)] = [
      (0x01, 7, .max), (0x02, 7, 4_711), (0x04, 5, .max), (0x10, 7, .max), (0x20, 5, .max),
    ]
    let list = accessControlList(entries)
    let byDefault = FileName("system.posix_acl_default")
    let forAccess = FileName("system.posix_acl_access")
    try scene.shell("mkdir -p item/a; touch item/a/b item/c; mkdir other")
    guard try accepts(scene.place.path + "/item/a", byDefault, list) else {
      return print("skipped: no access control lists here")
    }
    #expect(try accepts(scene.place.path + "/item/c", forAccess, list))
    #expect(try accepts(scene.place.path + "/other", byDefault, list))
    let other = try FileDescriptor.open(scene.place.path + "/other", [.readOnly, .directory])
    for target in [scene.at, other.rawValue] {
      try TreeCopy().copy(scene.item, at: scene.at, to: scene.staged, at: target)
      let lists = try ["", "/a", "/a/b", "/c"].map { name in
        let file = try FileDescriptor.open(FileName("staged" + name), at: target, .readOnly)
        let names = try file.attributeNames()
        return (names.contains(forAccess) ? "access" : "")
          + (names.contains(byDefault) ? "default" : "")
      }
      #expect(lists == ["", "default", "", "access"])
    }
  }

  private func accepts(_ path: String, _ name: FileName, _ value: [UInt8]) throws -> Bool {
    let file = try FileDescriptor.open(path, .readOnly)
    do {
      try file.setAttribute(name, value)
      return true
    } catch {
      guard error == .unsupported else { throw error }
      return false
    }
  }
}
