import ConnectivityTesting
import Testing
import WatchConnectivity
import WormholeEtcd
import WormholeSystem
import WormholeTestSupport
import WormholeWorkshop

@testable import WormholeCinemaTime

/// A machine of its own, as far as the network goes: a namespace, and a link to the one with etcd.
private final class Machine: Sendable {
  private let shell: NamespaceShell
  private let hub: NamespaceShell
  /// The end of the link at etcd.
  private let link: String
  /// The address of etcd, seen from here.
  let host: String

  init(_ number: Int, at hub: NamespaceShell) throws {
    self.hub = hub
    link = "machine\(number)"
    host = "10.77.\(number).1"
    shell = try NamespaceShell(["--net"])
    try hub.run("ip link add \(link) type veth peer name uplink netns \(shell.processID)")
    try hub.run("ip addr add \(host)/24 dev \(link) && ip link set \(link) up")
    try shell.run("ip link set lo up && ip addr add 10.77.\(number).2/24 dev uplink")
    try shell.run("ip link set uplink up")
  }

  /// The program that starts another one here.
  var launcher: [String] { ["nsenter", "--net=/proc/\(shell.processID)/ns/net"] }

  @discardableResult
  func run(_ command: String) throws -> String { try shell.run(command) }

  func cut() throws { try hub.run("ip link set \(link) down") }
  func mend() throws { try hub.run("ip link set \(link) up") }
}

/// A phone and a watch on two machines, which have etcd in common and nothing else.
private final class TwoMachines {
  private let directory: TemporaryDirectory
  private let hub: NamespaceShell
  private let node: EtcdNode
  let phone: Machine
  let watch: Machine
  private var sides: [StorySide] = []
  private var agent: String?

  static let obstacle: String? = {
    guard !EtcdNode.isMissing else { return "etcd is not installed" }
    guard Program.effectiveUser == 0 else { return "only root makes network namespaces" }
    do {
      try NamespaceShell(["--net"]).run("ip link set lo up")
      return nil
    } catch {
      return "no network namespaces here (Debian: apt-get install iproute2): \(error)"
    }
  }()

  init() throws {
    directory = try TemporaryDirectory()
    hub = try NamespaceShell(["--net"])
    try hub.run("ip link set lo up")
    phone = try Machine(1, at: hub)
    watch = try Machine(2, at: hub)
    var setting = EtcdNode.Setting(directory: directory.path)
    setting.host = "0.0.0.0"
    setting.launcher = ["nsenter", "--net=/proc/\(hub.processID)/ns/net"]
    node = try EtcdNode(alone: setting)
  }

  deinit {
    for side in sides { side.process.kill() }
    // The agent's program, and the phone that it has started.
    do {
      if let agent { try phone.run("kill \(agent); pkill -f '\(container(of: phone)) phone' || :") }
    } catch {
      print("cannot end the agent \(agent ?? ""): \(error)")
    }
  }

  private func container(of machine: Machine) -> String {
    "etcd://\(machine.host):\(node.endpoint.split(separator: ":").last ?? "")/cinema"
  }

  private func state(of role: WCSession.Role) -> String { "\(directory.path)/\(role.rawValue)" }

  /// Starts the agent for what is registered on the phone's machine.
  func startAgent() throws {
    let said = directory.path + "/agent"
    // The temporary files are those of the phones that it starts.
    let variables =
      "TMPDIR='\(directory.path)' XDG_STATE_HOME='\(state(of: .phone))' "
      + "WORMHOLE_CONTAINER='\(container(of: phone))'"
    let agent = try phone.run(
      "\(variables) '\(BuiltProgram.path("wormhole"))' peer launch --agent >'\(said)' 2>&1 & echo $!"
    )
    try phone.run("until grep -q listening '\(said)'; do kill -0 \(agent) && sleep 0.05; done")
    self.agent = agent
  }

  func start(_ role: WCSession.Role) throws -> StorySide {
    let machine = role == .phone ? phone : watch
    let words =
      try machine.launcher + [
        BuiltProgram.path("cinematime"), "--container", container(of: machine), role.rawValue,
      ]
    let process = try SideProcess(
      "/usr/bin/env", words,
      environment: [
        "TMPDIR": directory.path, "XDG_STATE_HOME": state(of: role),
      ])
    let side = StorySide(process, as: role, on: .silent)
    side.patience = .seconds(60)
    sides.append(side)
    _ = try side.notices("session is active", count: 1)
    return side
  }
}

@Suite(
  "A phone and a watch on two machines", .blocking, .waiting,
  .disabled(if: TwoMachines.obstacle != nil, "\(TwoMachines.obstacle ?? "")"))
struct TwoMachinesTests {
  /// The numbers of the films on tickets.
  private func tickets(_ side: StorySide) throws -> [String] {
    try side.answer(lines: "tickets").compactMap { line in
      line.split(separator: " ").dropFirst().first.map(String.init)
    }
  }

  @Test("play the story: tickets, codes, and messages to one that sleeps come across")
  func story() throws {
    let machines = try TwoMachines()
    let phone = try machines.start(.phone)
    var watch = try machines.start(.watch)
    #expect(try phone.answer("buy 23523").hasPrefix("bought"))
    // The QR code is a file, and comes through etcd.
    _ = try watch.wait(for: "tickets", toShow: "23523 Africa Screams (QR code)")
    try watch.quit()
    for id in [31413, 23415, 87934] { #expect(try phone.answer("buy \(id)").hasPrefix("bought")) }
    watch = try machines.start(.watch)
    _ = try watch.wait(for: "tickets", toShow: "87934")
    let received = try watch.notices("user info says", count: 3)
    #expect(received.map { $0.split(separator: ",").count } == [2, 3, 4])
    // Both want one seat.
    for side in [phone, watch] { try side.send("buy 34340") }
    let answers = try [phone, watch].map { try $0.receive() }
    #expect(answers.count { $0.hasPrefix("bought") } == 1, "\(answers)")
    // One deletes what the other does not touch.
    try phone.send("delete 34340")
    try watch.send("buy 77788")
    #expect(try phone.receive().hasPrefix("deleted") && watch.receive().hasPrefix("bought"))
    for side in [phone, watch] {
      _ = try side.wait(for: "tickets", toShow: "77788")
      _ = try side.wait(for: "tickets", toShow: "34340", isShown: false)
    }
    #expect(try tickets(phone) == tickets(watch) && tickets(phone).count == 5)
  }

  // Without an agent the watch cannot start it.
  @Test("get the QR code when the phone comes that did not answer")
  func latePhone() throws {
    let machines = try TwoMachines()
    // It looks present until its session ends, so the watch asks it.
    try machines.start(.phone).process.kill()
    let watch = try machines.start(.watch)
    _ = try watch.answer("buy 34340")
    // At its start, and for the ticket.
    _ = try watch.notices("the phone did not answer", count: 6)
    _ = try machines.start(.phone)
    _ = try watch.wait(for: "tickets", toShow: "34340 The General (QR code)")
  }

  @Test("wake a phone that does not run, by the agent on its machine")
  func wake() throws {
    let machines = try TwoMachines()
    try machines.start(.phone).quit()
    let watch = try machines.start(.watch)
    try machines.startAgent()
    #expect(try watch.answer("buy 23523").hasPrefix("bought"))
    // Only a phone sends the code.
    _ = try watch.wait(for: "tickets", toShow: "23523 Africa Screams (QR code)")
  }

  @Test(
    "agree again after the link was cut and mended, and have every ticket that was bought",
    arguments: [WCSession.Role.watch, .phone])
  func cut(_ role: WCSession.Role) throws {
    let machines = try TwoMachines()
    let sides = try [WCSession.Role.phone: machines.start(.phone), .watch: machines.start(.watch)]
    let near = try #require(sides[role == .phone ? .watch : .phone])
    let far = try #require(sides[role])
    var bought: Set<String> = []
    func buy(_ id: String, on side: StorySide) throws {
      try side.send("buy \(id)")
      let answer = try side.receive()
      // One that could not be made says so; it may have been made all the same.
      if answer.hasPrefix("bought") {
        bought.insert(id)
      } else {
        #expect(answer.contains("etcd://"))
      }
    }
    try buy("23523", on: near)
    _ = try far.wait(for: "tickets", toShow: "23523")
    let machine = role == .phone ? machines.phone : machines.watch
    try machine.cut()
    try buy("31413", on: near)
    try buy("87934", on: far)
    try buy("23415", on: near)
    #expect(bought == ["23523", "31413", "23415"], "what the far one buys comes nowhere")
    #expect(try !tickets(far).contains("31413"))
    try machine.mend()
    try buy("77788", on: far)
    _ = try near.wait(for: "tickets", toShow: "77788")
    _ = try far.wait(for: "tickets", toShow: "23415")
    // The far one's purchase may have been made all the same, and is then on its way.
    try eventually("both have the same tickets") { try tickets(near) == tickets(far) }
    #expect(try Set(tickets(near)).isSuperset(of: bought))
    // What was sent over the link meanwhile has arrived: the codes, and the news of each purchase.
    _ = try near.wait(for: "state", toShow: "activated")
    if role == .watch {
      _ = try far.wait(for: "tickets", toShow: "31413 Angel On My Shoulder (QR code)")
    }
  }
}
