import Synchronization
import SystemCalls

/// What a worker does to itself in the middle of an operation, where a stop from outside would
/// hardly ever hit. The main process sees that it is stopped, and continues it some time later.
struct Disturbance: Sendable {
  /// How long an update's closure takes.
  var pause: Duration?
  /// Stops in an update's closure: under the lease, after the old value was read.
  var stopsInClosure = false
  var interruption: Interruption?

  static func random(using random: inout SeededGenerator) -> Disturbance {
    var disturbance = Disturbance()
    if random.chance(20) { disturbance.pause = random.milliseconds(0...12) }
    disturbance.stopsInClosure = random.chance(3)
    disturbance.interruption = Interruption.random(using: &random)
    return disturbance
  }

  /// To be called in an update's closure.
  func act() throws(Errno) {
    if let pause { pauseThread(pause) }
    if stopsInClosure { try Program.send(.stop, to: Program.processID) }
  }

  /// Runs an operation, and interrupts it if this disturbance says so.
  ///
  /// - Parameter renames: whether the operation uses a plain rename even if it takes nothing away.
  func during<Result>(
    renames: Bool = false, _ operation: () throws -> Result
  ) throws -> Result {
    #if DEBUG
      if let interruption, !renames || interruption.place != .afterTakingAway {
        return try interruption.during(operation)
      }
    #endif
    return try operation()
  }
}

/// A stop or a kill between two system calls; only debug builds have the place for it.
struct Interruption: Sendable {
  /// Where: at the moments in which the lease's rules matter, or anywhere.
  enum Place: Sendable, Equatable {
    /// The lease is locked, and nothing in it says by whom.
    case beforeDeclaring
    /// All is written and nothing visible.
    case beforePublishing
    /// Just after a rename.
    case afterRename
    /// The same in an operation that itself renames in another way, so that it can only be the taking
    /// away of a lease: it is moved aside and not yet removed (rule 4).
    case afterTakingAway
    /// Before the system call of that number.
    case call(Int)
  }

  let place: Place
  let isFatal: Bool

  static func random(using random: inout SeededGenerator) -> Interruption? {
    let place: Place
    switch Int.random(in: 0..<1_000, using: &random) {
    case 0..<25: place = .beforeDeclaring
    case 25..<35: place = .beforePublishing
    case 35..<40: place = .afterRename
    case 40..<60: place = .call(Int.random(in: 0..<40, using: &random))
    // Few operations take a lease away, so most of these come to nothing.
    case 60..<360: place = .afterTakingAway
    default: return nil
    }
    return Interruption(place: place, isFatal: random.chance(10))
  }

  #if DEBUG
    func during<Result>(_ operation: () throws -> Result) throws -> Result {
      // Nil once it has happened.
      let isArmed = Mutex<Bool?>(false)
      let plan = Faults.Plan { call, index in
        isArmed.withLock { armed in
          guard let wasArmed = armed else { return .proceed }
          guard place.isHere(call, index, isArmed: wasArmed) else {
            armed = wasArmed || place.arms(call)
            return .proceed
          }
          armed = nil
          return isFatal ? .die : .stop
        }
      }
      return try Faults.$plan.withValue(plan) { try operation() }
    }
  #endif
}

#if DEBUG
  extension Interruption.Place {
    fileprivate func arms(_ call: SystemCall) -> Bool {
      switch self {
      case .beforeDeclaring: call == .flock
      case .afterRename, .afterTakingAway: call == .renameat
      case .beforePublishing, .call: false
      }
    }

    fileprivate func isHere(_ call: SystemCall, _ index: Int, isArmed: Bool) -> Bool {
      switch self {
      case .beforeDeclaring: isArmed && call == .openat
      case .beforePublishing: call == .renameat2
      case .afterRename, .afterTakingAway: isArmed
      case .call(let number): index == number
      }
    }
  }
#endif
