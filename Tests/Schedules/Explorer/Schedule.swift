import FoundationEssentials
import Synchronization
import Wormhole
import WormholeSeam
import WormholeSystem

/// A schedule: what to run, and the choices that differ from the standard order.
struct Schedule: Sendable {
  /// The operations of each participant, and the mutant.
  var plan: Plan
  var choices: [Choice] = []
  var seed: UInt64?

  struct Plan: Sendable, Hashable {
    var roles: [[String]]
    var mutant: String?

    init(_ text: String, mutant: String? = nil) {
      roles = text.split(separator: "|").map { role in
        role.split(separator: ";").map { $0.split(separator: " ").joined(separator: " ") }
      }
      self.mutant = mutant
    }

    /// Whether it coordinates files.
    var coordinates: Bool {
      roles.joined().contains {
        let name = $0.hasPrefix("@") ? $0.dropFirst() : $0[...]
        return name.hasPrefix("c") && name != "call" && name != "copy"
      }
    }

    var text: String { roles.map { $0.joined(separator: "; ") }.joined(separator: " | ") }
  }

  struct Choice: Sendable, Hashable {
    let step: Int
    let action: Action
    let process: Int

    enum Action: UInt8, Sendable, CaseIterable {
      case go = 1
      case time, stop, resume, kill
    }

    var c: seam_choice {
      seam_choice(step: UInt32(step), action: action.rawValue, process: UInt8(process))
    }
  }
}

extension Schedule.Choice {
  init?(_ c: seam_choice) {
    guard let action = Action(rawValue: c.action) else { return nil }
    self.init(step: Int(c.step), action: action, process: Int(c.process))
  }
}

/// What a schedule led to.
struct Outcome {
  var end: seam_end
  /// The decisions of the participants, without those of the concluding process.
  var steps = 0
  var choices: [Schedule.Choice]
  /// What each process has reported, by its number.
  var notes: [[[Substring]]] = []
  var statuses: [Int] = []
  var wasStopped: [Bool] = []
  var silence: Int64 = 0
  /// The moment at which a process that answers calls was killed.
  var killed = Int64.max
}

/// Runs schedules, one after another, each in a container of its own.
final class Runner {
  let directory: String
  private(set) var count = 0
  private var container: SharedContainer?

  init(directory: String) { self.directory = directory }

  private var place: String { directory + "/c" }

  /// Runs the processes that were started.
  private func run(_ process: Int) -> seam_end {
    seam_start(Int32(process)) { Participant.begin($0) }
    return seam_run()
  }

  /// Creates a container, its copy, and what the processes inherit.
  private func prepare() throws {
    let template = try open("template")
    try makeDirectory(directory + "/copies", at: Directory.current, mode: 0o700)
    seam_begin(directory + "/", 0)
    Participant.task.withLock { $0 = .init(container: template) }
    let end = run(Participant.first)
    let notes = String(cString: seam_notes(Int32(Participant.first)))
    guard end == seam_finished, seam_status(Int32(Participant.first)) == 0, notes.isEmpty else {
      throw Failure("the container cannot be prepared: \(end) \(notes)")
    }
    _ = seam_copy_tree(directory + "/template", directory + "/warm")
    try Participant.warmUp(open("warm"))
    _ = seam_copy_tree(directory + "/template", place)
    container = try open("c")
    seam_name_open(place)
  }

  private func open(_ name: String) throws -> SharedContainer {
    let path = directory + "/" + name
    _ = try tolerating(
      [.alreadyExists], makeDirectory(path, at: Directory.current, mode: 0o700))
    return try SharedContainer(url: URL(filePath: path, directoryHint: .isDirectory))
  }

  /// What the concluding process has found in each state of the container: equal trees, without the parts
  /// of names and the files that differ each time, lead to equal reports.
  private var conclusions: [[UInt64]: [[Substring]]] = [:]

  func run(_ schedule: Schedule, isVerbose: Bool = false) throws -> Outcome {
    if container == nil { try prepare() }
    count += 1
    seam_remove_tree(place, "container.plist")
    seam_remove_tree(directory + "/copies", "")
    guard seam_copy_tree(directory + "/template", place) == 0 else { throw Failure("no copy") }
    seam_begin(directory + "/", isVerbose ? 1 : 0)
    Participant.task.withLock {
      $0 = .init(
        roles: schedule.plan.roles, coordinates: schedule.plan.coordinates, container: container,
        mutant: schedule.plan.mutant)
    }
    for choice in schedule.choices { seam_choose(choice.c) }
    if let seed = schedule.seed { seam_prioritize(seed, 3, 150, Int32(seed % 2)) }
    for process in schedule.plan.roles.indices {
      seam_start(Int32(process)) { Participant.begin($0) }
    }
    var outcome = Outcome(end: seam_run(), choices: [])
    outcome.steps = Int(seam_step_count())
    outcome.choices = (0..<seam_made_count()).compactMap { Schedule.Choice(seam_made_at($0)) }
    outcome.silence = seam_silence()
    let roles = schedule.plan.roles
    let kill = outcome.choices.first { $0.action == .kill && roles[$0.process].contains("serve") }
    if let kill {
      outcome.killed = seam_step_at(Int32(kill.step)).time
    }
    let state = [seam_tree_hash(place), schedule.plan.coordinates ? 1 : 0]
    let known = isVerbose ? nil : conclusions[state]
    if outcome.end == seam_finished, known == nil, run(Participant.last) != seam_finished {
      outcome.end = seam_stuck
    }
    for process in 0..<Int32(seam_processes) {
      let lines = String(cString: seam_notes(process)).split(separator: "\n")
      outcome.notes.append(lines.map { $0.split(separator: " ") })
      outcome.statuses.append(Int(seam_status(process)))
      outcome.wasStopped.append(seam_was_stopped(process) != 0)
    }
    if let known { outcome.notes[Participant.last] = known }
    if outcome.end == seam_finished, outcome.statuses[Participant.last] == 0 {
      conclusions[state] = outcome.notes[Participant.last]
    }
    return outcome
  }
}

struct Failure: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}
