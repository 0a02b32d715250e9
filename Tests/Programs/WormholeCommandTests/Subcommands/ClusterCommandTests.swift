import Foundation
import Testing
import WormholeEtcd
import WormholeSystem
import WormholeTestSupport

/// A bare machine: a network, a file system below /etc and /var/lib, and processes of its own. It has
/// Debian's etcd, with its service running, and a stand-in for systemd.
private final class BareMachine: Sendable {
  private let shell: NamespaceShell
  let name: String

  /// - Parameters:
  ///   - number: The end of its address, 10.78.0.N; its name is hN.
  ///   - hub: Has the bridge that joins all; nil for the machine that is the hub.
  ///   - directory: For its files.
  init(_ number: Int, at hub: BareMachine?, in directory: String) throws {
    name = "h\(number)"
    let place = "\(directory)/\(name)"
    // In another namespace of processes the hub could not name those of the machines.
    let ofProcesses = hub == nil ? [] : ["--pid", "--kill-child"]
    shell = try NamespaceShell(["--net", "--mount"] + ofProcesses)
    try run("mkdir -p \(place)/bin && cp -a /etc \(place)/etc && mount --bind \(place)/etc /etc")
    try run("mkdir -p /etc/systemd/system && mount -t tmpfs none /var/lib && ip link set lo up")
    for other in 1...4 { try run("echo 10.78.0.\(other) h\(other) >>/etc/hosts") }
    if let hub {
      try hub.run("ip link add port\(number) type veth peer name uplink netns \(shell.processID)")
      try hub.run("ip link set port\(number) master bridge && ip link set port\(number) up")
      try run("ip addr add 10.78.0.\(number)/24 dev uplink && ip link set uplink up")
    } else {
      try run("ip link add bridge type bridge && ip addr add 10.78.0.\(number)/24 dev bridge")
      try run("ip link set bridge up")
      return
    }
    let systemd = """
      #!/bin/sh
      echo "$*" >>'\(place)/asked'
      unit=/etc/systemd/system/wormhole-etcd.service
      value() { sed -n "s/^$1=//p" $unit; }
      case $1 in
      disable) kill -9 $(cat '\(place)/debian') ;;
      restart)
        cd "$(value WorkingDirectory)" && exec >'\(place)/log' 2>&1
        setpriv --reuid "$(value User)" --regid "$(value User)" --clear-groups $(value ExecStart) &
        echo $! >'\(place)/ours'
        ;;
      esac
      """
    try Data(systemd.utf8).write(to: URL(fileURLWithPath: place + "/bin/systemctl"))
    try run("chmod 755 \(place)/bin/systemctl")
    try run(
      "{ etcd --data-dir \(place)/data >\(place)/debian.log 2>&1 & } && echo $! >\(place)/debian")
  }

  @discardableResult
  func run(_ command: String) throws -> String { try shell.run(command) }

  static let obstacle: String? = {
    guard !EtcdNode.isMissing, !EtcdNode.isControlMissing else { return "etcd is not installed" }
    guard !Certificates.areMissing else { return "openssl is not installed" }
    guard Program.effectiveUser == 0 else { return "only root makes network namespaces" }
    do {
      try NamespaceShell(["--net", "--mount"]).run(
        "ip link add bridge type bridge && mount -t tmpfs none /var/lib && id etcd")
      return nil
    } catch {
      return "no bridges and file systems here: \(error)"
    }
  }()
}

@Suite("wormhole etcd init", .blocking)
struct ClusterCommandTests {
  @Test(
    "leads from three bare machines to a message, encrypted, for the users of a container only",
    // The gate runs as root, and installs etcd and openssl.
    .disabled(if: BareMachine.obstacle != nil, "\(BareMachine.obstacle ?? "")"))
  func machines() throws {
    let session = try Session()
    let place = session.container
    let made = try session.shell(
      "wormhole etcd init h1 h2 h3 --tls --prefix cinema --prefix other --directory '\(place)/new'")
    #expect(made.status == 0, "\(made)")
    let steps = made.output.split(separator: "\n").map(String.init)
    #expect(steps.count == 6)

    let hub = try BareMachine(4, at: nil, in: place)
    let machines = try (1...3).map { try BareMachine($0, at: hub, in: place) }
    for machine in machines {
      try machine.run(
        "PATH=\(place)/\(machine.name)/bin:$PATH '\(place)/new/\(machine.name)/install'")
    }
    for machine in machines {
      let asked = try machine.run("cat \(place)/\(machine.name)/asked")
      #expect(
        asked == """
          disable --now etcd daemon-reload enable wormhole-etcd.service restart --no-block \
          wormhole-etcd.service
          """)
      let files = try machine.run(
        "stat -c '%U %a' /var/lib/wormhole-etcd/*.key /var/lib/wormhole-etcd")
      #expect(files == "etcd 600 etcd 700")
    }
    // The second of the printed steps.
    try hub.run("'\(place)/new/users' || { cat \(place)/h1/log; false; }")
    // The rights that the first run had enabled refused a second run.
    try hub.run("'\(place)/new/users'")

    let program = try BuiltProgram.path("wormhole")
    let locations = steps.suffix(2).compactMap { line in
      line.split(separator: "'").dropFirst().first.map(String.init)
    }
    let location = try #require(locations.first)
    func wormhole(_ words: String, on machine: BareMachine, at location: String) throws -> String {
      try machine.run(
        "XDG_STATE_HOME='\(place)/state' WORMHOLE_CONTAINER='\(location)' '\(program)' \(words)")
    }
    _ = try wormhole("send greeting hello", on: hub, at: location)
    #expect(try wormhole("read greeting", on: machines[1], at: location) == "\"hello\"")

    func refusal(_ location: String) throws -> String {
      try wormhole("read greeting || echo status $?", on: hub, at: location)
    }
    let other = location.replacingOccurrences(of: "/clients/cinema/", with: "/clients/other/")
      .replacingOccurrences(of: "cinema@", with: "other@")
    let denied = try refusal(other)
    #expect(denied.hasSuffix("status 77"), "a user of another container: \(denied)")
    let words = location.split(separator: "&").filter {
      !$0.hasPrefix("cert=") && !$0.hasPrefix("key=")
    }
    let bare = try refusal(words.joined(separator: "&"))
    #expect(bare.contains("certificate") && bare.hasSuffix("status 69"), "no certificate: \(bare)")
    let plain = try refusal("etcd://h1,h2,h3/cinema")
    #expect(
      plain.contains("unreachable") || plain.hasSuffix("status 69"), "not encrypted: \(plain)")

    // All of the above needs two members; the third one may still begin.
    try eventually("the doctor finds three healthy members") {
      let said = try wormhole("doctor", on: hub, at: location)
      return !said.contains("warning") && !said.contains("fault")
    }

    try machines[0].run("kill -9 $(cat \(place)/h1/ours)")
    _ = try wormhole("send greeting again", on: hub, at: location)
    #expect(try wormhole("read greeting", on: machines[2], at: location) == "\"again\"")
  }

  @Test("writes the files for one machine, and refuses a directory that exists")
  func plain() throws {
    let outcome = try Session().shell(
      """
      wormhole etcd init fd00::1 && find wormhole-etcd -type f | LC_ALL=C sort
      grep -e urls -e cluster: wormhole-etcd/fd00::1/etcd.yml
      wormhole etcd init h1; echo $?
      """)
    #expect(
      outcome.output.split(separator: "\n").suffix(9).joined(separator: "\n") == """
        wormhole-etcd/fd00::1/etcd.yml
        wormhole-etcd/fd00::1/install
        wormhole-etcd/fd00::1/wormhole-etcd.service
        listen-client-urls: "http://[::]:2379"
        advertise-client-urls: "http://[fd00::1]:2379"
        listen-peer-urls: "http://[::]:2380"
        initial-advertise-peer-urls: "http://[fd00::1]:2380"
        initial-cluster: "fd00::1=http://[fd00::1]:2380"
        74
        """)
    #expect(outcome.output.contains("WORMHOLE_CONTAINER='etcd://[fd00::1]/wormhole'"))
    #expect(outcome.errors.contains("it exists already"))
  }

  @Test(
    "refuses what can be no cluster",
    arguments: [
      ("a b", "tolerate no more failures"), ("a a a", "named twice"), ("'a b'", "neither a name"),
      ("a --prefix x/y", "not a name of letters"), ("a --prefix root", "not a name of letters"),
      ("", "missing"),
    ])
  func refused(_ words: String, _ reason: String) throws {
    let outcome = try Session().shell("wormhole etcd init \(words); echo $?; ls | grep etcd")
    #expect(outcome.output == "64\n" && outcome.errors.lowercased().contains(reason), "\(outcome)")
  }
}
