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
    if random.chance(25) { disturbance.pause = random.milliseconds(0...12) }
    disturbance.stopsInClosure = random.chance(2)
    disturbance.interruption = Interruption.random(using: &random)
    return disturbance
  }

  /// To be called in an update's closure.
  func act() throws(Errno) {
    if let pause { pauseThread(pause) }
    if stopsInClosure { try Program.send(.stop, to: Program.processID) }
  }

  /// Runs an operation, and interrupts it if this disturbance says so.
  func during<Result>(_ operation: () throws -> Result) throws -> Result {
    #if DEBUG
      if let interruption { return try interruption.during(operation) }
    #endif
    return try operation()
  }
}

/// A stop or a kill between two system calls; only debug builds have the place for it.
struct Interruption: Sendable {
  /// Where: at the moments in which the lease's rules matter, or anywhere.
  enum Place: Sendable {
    /// The lease is locked, and nothing in it says by whom.
    case beforeDeclaring
    /// All is written and nothing visible.
    case beforePublishing
    /// Just after a rename; of a breaker: the lease is moved aside and not yet removed (rule 4).
    case afterRename
    /// Before the system call of that number.
    case call(Int)
  }

  let place: Place
  let isFatal: Bool

  static func random(using random: inout SeededGenerator) -> Interruption? {
    let place: Place
    switch Int.random(in: 0..<1_000, using: &random) {
    case 0..<15: place = .beforeDeclaring
    case 15..<25: place = .beforePublishing
    // Hardly any operation takes a lease away, so nearly all of these come to nothing.
    case 25..<325: place = .afterRename
    case 325..<340: place = .call(Int.random(in: 0..<40, using: &random))
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
      case .afterRename: call == .renameat
      case .beforePublishing, .call: false
      }
    }

    fileprivate func isHere(_ call: SystemCall, _ index: Int, isArmed: Bool) -> Bool {
      switch self {
      case .beforeDeclaring: isArmed && call == .openat
      case .beforePublishing: call == .renameat2
      case .afterRename: isArmed
      case .call(let number): index == number
      }
    }
  }
#endif
