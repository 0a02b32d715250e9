import Synchronization
import WormholeSystem
import WormholeWorkshop

/// A disturbance that a worker makes during its own operation, where a stop from outside would
/// hardly ever hit. The main process sees that the worker is stopped, and continues it some time
/// later.
struct Disturbance: Sendable {
  /// The duration of an update's closure.
  var pause: Duration?
  /// Whether the worker stops in an update's closure: under the lease, after it has read the old
  /// value.
  var stopsInClosure = false
  var interruption: Interruption?

  static func random(using random: inout SeededGenerator) -> Disturbance {
    var disturbance = Disturbance()
    if random.chance(20) { disturbance.pause = random.milliseconds(0...12) }
    disturbance.stopsInClosure = random.chance(3)
    disturbance.interruption = Interruption.random(using: &random)
    return disturbance
  }

  /// Acts within an update's closure.
  func act() throws(Errno) {
    if let pause { pauseThread(pause) }
    if stopsInClosure { try Program.send(.stop, to: Program.processID) }
  }

  /// Runs an operation, and interrupts it if this disturbance requires it.
  func during<Result>(_ operation: () throws -> Result) throws -> Result {
    #if DEBUG
      if let interruption { return try interruption.during(operation) }
    #endif
    return try operation()
  }
}

/// A stop or a kill between two system calls, which only debug builds can inject.
struct Interruption: Sendable {
  /// The point of the interruption: a moment in which the lease's rules matter, or any moment.
  enum Point: Sendable, Equatable {
    /// The lease is locked, but does not name its holder yet.
    case beforeDeclaring
    /// Everything is written and nothing is visible.
    case beforePublishing
    /// Just after a rename.
    case afterRename
    /// A taken-over lease is moved aside, but not yet removed (rule 4).
    case afterTakingAway
    /// Before the system call with that number.
    case call(Int)
  }

  let point: Point
  let isFatal: Bool

  static func random(using random: inout SeededGenerator) -> Interruption? {
    let point: Point
    switch Int.random(in: 0..<1_000, using: &random) {
    case 0..<10: point = .beforeDeclaring
    case 10..<20: point = .beforePublishing
    case 20..<25: point = .afterRename
    case 25..<45: point = .call(Int.random(in: 0..<40, using: &random))
    // Few operations take over a lease, so most of these have no effect.
    case 45..<345: point = .afterTakingAway
    default: return nil
    }
    return Interruption(point: point, isFatal: random.chance(10))
  }

  #if DEBUG
    func during<Result>(_ operation: () throws -> Result) throws -> Result {
      // The last calls, which identify a point; nil after an interruption, because one is enough.
      let trail = Mutex<[SystemCall]?>([])
      let plan = Faults.Plan { call, index in
        trail.withLock { trail in
          guard let last = trail else { return .proceed }
          trail = last.suffix(1) + [call]
          guard point.isAt(call, index: index, after: last.last, last.dropLast().last) else {
            return .proceed
          }
          trail = nil
          return isFatal ? .die : .stop
        }
      }
      return try Faults.$plan.withValue(plan) { try operation() }
    }
  #endif
}

#if DEBUG
  extension Interruption.Point {
    fileprivate func isAt(
      _ call: SystemCall, index: Int, after last: SystemCall?, _ secondToLast: SystemCall?
    ) -> Bool {
      switch self {
      // The holder of the lock looks into the lease's directory once; a waiter looks twice.
      case .beforeDeclaring:
        call == .openat && last == .getdents64 && secondToLast != .getdents64
      case .beforePublishing: call == .renameat2
      case .afterRename: last == .renameat
      // A process that takes over checks once more whether the name still belongs to that lease:
      // fstatat and fstat.
      case .afterTakingAway: last == .renameat && secondToLast == .fstat
      case .call(let number): index == number
      }
    }
  }
#endif
