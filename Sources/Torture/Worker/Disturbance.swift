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
  enum Place: Sendable, Equatable {
    /// The lease is locked, and nothing in it says by whom.
    case beforeDeclaring
    /// All is written and nothing visible.
    case beforePublishing
    /// Just after a rename.
    case afterRename
    /// A lease that was taken away is moved aside, and not yet removed (rule 4).
    case afterTakingAway
    /// Before the system call of that number.
    case call(Int)
  }

  let place: Place
  let isFatal: Bool

  static func random(using random: inout SeededGenerator) -> Interruption? {
    let place: Place
    switch Int.random(in: 0..<1_000, using: &random) {
    case 0..<10: place = .beforeDeclaring
    case 10..<20: place = .beforePublishing
    case 20..<25: place = .afterRename
    case 25..<45: place = .call(Int.random(in: 0..<40, using: &random))
    // Few operations take a lease away, so most of these come to nothing.
    case 45..<345: place = .afterTakingAway
    default: return nil
    }
    return Interruption(place: place, isFatal: random.chance(10))
  }

  #if DEBUG
    func during<Result>(_ operation: () throws -> Result) throws -> Result {
      let trail = Mutex(Trail())
      let plan = Faults.Plan { call, index in
        trail.withLock { trail in
          defer { trail.append(call) }
          guard !trail.isOver, trail.isAt(place, call, index) else { return .proceed }
          trail.isOver = true
          return isFatal ? .die : .stop
        }
      }
      return try Faults.$plan.withValue(plan) { try operation() }
    }
  #endif
}

#if DEBUG
  /// The calls of an operation so far: by them a place is recognised.
  private struct Trail {
    private var last: SystemCall?
    private var secondToLast: SystemCall?
    /// One interruption is enough.
    var isOver = false

    mutating func append(_ call: SystemCall) {
      secondToLast = last
      last = call
    }

    func isAt(_ place: Interruption.Place, _ call: SystemCall, _ index: Int) -> Bool {
      switch place {
      // Whoever has got the lock takes one look into the lease's directory; who waits, takes two.
      case .beforeDeclaring:
        call == .openat && last == .getdents64 && secondToLast != .getdents64
      case .beforePublishing: call == .renameat2
      case .afterRename: last == .renameat
      // A breaker looks once more whether the name is still that lease's: fstatat and fstat.
      case .afterTakingAway: last == .renameat && secondToLast == .fstat
      case .call(let number): index == number
      }
    }
  }
#endif
