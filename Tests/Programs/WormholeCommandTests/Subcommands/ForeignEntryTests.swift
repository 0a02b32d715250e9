import Glibc
import Testing
import WormholeSystem
import WormholeTestSupport

/// Entries in a container's directories of names that are no names, as another program or an
/// administrator leaves them there.
@Suite("An entry that cannot be a name", .blocking)
struct ForeignEntryTests {
  /// A directory of names.
  private struct Root {
    let path: String
    /// The names of the entries begin and end so, as if they were names that commands look for.
    let name: (before: String, after: String)
    /// The commands besides `copy` and `backup` that walk over all of its names, and those that look into
    /// each of their directories.
    let walks: Set<String>
    let looks: Set<String>

    init(
      _ path: String, _ before: String = "", _ after: String = "", walks: Set<String> = [],
      looks: Set<String> = ["copy", "backup"]
    ) {
      self.path = path
      name = (before, after)
      self.walks = walks.union(looks).union(["copy", "backup"])
      self.looks = looks
    }
  }

  private static let roots = [
    Root("values", looks: ["ls", "copy", "backup"]),
    Root("notifications", walks: ["ls"]),
    Root("presence", looks: ["ls", "presence", "copy", "backup"]),
    Root("queues", walks: ["ls"]),
    Root("logs", walks: ["ls"]),
    Root("consumers"),
    Root(
      "own/values", "defaults%2F", walks: ["ls", "peers"], looks: ["copy", "backup"]),
    // How peers are launched is not copied.
    Root("own/values", "peer%2Flaunch%2F", walks: [], looks: ["ls", "peers"]),
    Root("own/presence", "peer%2F", looks: ["ls", "peers", "copy", "backup"]),
    Root("own/queues", "peer%2F", "%2Fmessages", walks: ["ls", "peers"]),
    Root("own/consumers", "peer%2F", "%2Fmessages"),
  ]

  private static let bad = ["link", "pipe", "socket", "file", "unreadable"]

  private func plant(_ kind: String, at path: String) throws {
    switch kind {
    case "link": #expect(symlink("/etc", path) == 0)
    case "pipe": #expect(mknod(path, S_IFIFO | 0o600, 0) == 0)
    case "socket": #expect(mknod(path, S_IFSOCK | 0o600, 0) == 0)
    case "file": _ = try FileDescriptor.open(path, [.writeOnly, .create])
    case "unreadable": try makeDirectory(path, mode: 0)
    default: try makeDirectory(path)
    }
  }

  /// The superuser reads every directory, so the commands run without that right.
  private static let wrapper =
    Program.effectiveUser == 0
    ? ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] : []

  private static let functions = """
    try() { name=$1; shift; "$@" >"$name.out" 2>"$name.err" </dev/null; echo $? >"$name.status"; }
    all() {
      mkdir -p "$1" && cd "$1" || exit
      try ls wormhole ls
      try presence wormhole presence list
      try peers wormhole peer list --json
      try queues wormhole queue list jobs
      try log wormhole log read news
      try read wormhole read 'b*'
      try listen wormhole listen 'b*' --current --count 1
      try status wormhole status
      try doctor wormhole doctor
      try monitor wormhole monitor --timeout 0.1
      try copy wormhole copy "$PWD/copied"
      try backup wormhole backup "$PWD/archive"
      try restore wormhole restore "$PWD/archive" --container "$PWD/restored"
      try sweep wormhole doctor --sweep
      for made in copied restored; do
        # The post file has a new name in each copy.
        (cd $made && find . -type f ! -name 'bell-*' | sort) >$made.files 2>&1
      done
      chmod -R u+rwX copied restored; rm -rf copied restored archive; cd "$T" || exit
    }

    """

  @Test("is an error for its own path; every walk goes on, and copies have all the rest")
  func matrix() throws {
    let session = try Session()
    func run(_ script: String) throws -> Session.Outcome {
      try session.shell(Self.functions + script, with: Self.wrapper)
    }
    let made = try run(
      """
      wormhole send boat 1; wormhole send "$(printf %0300d 0)" 2; wormhole notify set door 3
      wormhole notify post done; wormhole presence enter host -- true
      wormhole queue put jobs 1 >/dev/null; wormhole queue put jobs 2 >/dev/null
      wormhole queue take jobs --count 1 --retries 0 -- false 2>/dev/null
      wormhole log append news 1 >/dev/null; wormhole log read news --subscriber reader >/dev/null
      wormhole defaults write key 1; wormhole defaults write key 1 --suite other
      echo x >file; wormhole peer send watch 1 --from phone; wormhole peer send watch --file file --from phone
      mkdir "$C/beside"; echo x >"$C/beside/file"; all before; cp -a "$C" container.kept
      """)
    #expect(made.status == 0, "\(made)")
    func text(_ name: String) throws -> String {
      let path = session.container + "/../" + name
      return String(
        decoding: try FileDescriptor.open(path, .readOnly)
          .readToEnd(expectedBytes: 0, maximumBytes: 16 << 20), as: UTF8.self)
    }
    let copied = Set(try text("before/copied.files").split(separator: "\n"))
    #expect(copied.count > 12, "\(copied)")
    for (number, root) in Self.roots.enumerated() {
      let run = "after\(number)"
      #expect(
        try session.shell(
          "chmod -R u+rwX $C; rm -rf $C; cp -a container.kept $C; mkdir -p $C/\(root.path)"
        ).status == 0)
      let names = (Self.bad + ["directory"]).map { root.name.before + $0 + root.name.after }
      for (kind, name) in zip(Self.bad + ["directory"], names) {
        try plant(kind, at: session.container + "/" + root.path + "/" + name)
      }
      _ = try self.run("all \(run)", session)
      func lines(_ name: String) throws -> Set<Substring> {
        Set(try text(name).split(separator: "\n"))
      }
      for command in [
        "ls", "presence", "peers", "queues", "log", "read", "listen",
      ] {
        let (before, after) = try (lines("before/\(command).out"), lines("\(run)/\(command).out"))
        #expect(
          before.subtracting(after).isEmpty, "\(root) \(command): \(before.subtracting(after))")
      }
      for command in [
        "ls", "presence", "peers", "copy", "backup", "doctor", "status", "restore",
      ] {
        let status = try text("\(run)/\(command).status")
        let said = try text("\(run)/\(command).err")
        switch command {
        case "doctor": #expect(status == "1\n", "\(root) \(said)")
        case _ where root.walks.contains(command):
          #expect(status == "65\n", "\(root) \(command): \(said)")
        default:
          #expect(try status == text("before/\(command).status"), "\(root) \(command): \(said)")
        }
        let all = try command == "doctor" ? text("\(run)/doctor.out") : said
        for (kind, name) in zip(Self.bad, names)
        where command == "doctor"
          || (kind == "unreadable" ? root.looks : root.walks).contains(command)
        {
          #expect(all.contains("/\(root.path)/\(name)"), "\(root) \(command) \(name): \(all)")
        }
        let directory = "/\(root.path)/" + names[names.count - 1]
        #expect(!said.contains(directory), "\(root) \(command): \(said)")
      }
      for made in ["copied", "restored"] {
        let missing = copied.subtracting(try lines("\(run)/\(made).files"))
        #expect(missing.isEmpty, "\(root) \(made): \(missing)")
      }
    }
    let destroyed = try run("wormhole destroy --yes; echo $?; ls $C")
    #expect(destroyed.output == "0\nbeside\n", "\(destroyed)")
  }

  private func run(_ script: String, _ session: Session) throws -> Session.Outcome {
    try session.shell(Self.functions + script, with: Self.wrapper)
  }
}
