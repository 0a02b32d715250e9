import Glibc
import Synchronization
package import WormholeSystem

/// Receives signals instead of letting them end the process, for the lifetime of this value. Only
/// one such value may exist at a time. The corresponding C function is `sigaction`.
///
/// A signal that was ignored before stays ignored, as under `nohup`, because the parent process
/// intended that.
package struct SignalReception: ~Copyable {
  /// A signal that arrived at least once since the last call of `take`.
  package struct Received: Hashable, Sendable {
    package let signal: Signal
    /// Whether a process sent it. Otherwise the kernel sent it, for example for a key at the
    /// terminal, to every process of the terminal's foreground job.
    package let isFromProcess: Bool
  }

  private let counter: FileDescriptor
  private var previous: [(signal: Signal, action: sigaction)] = []

  /// - Throws: `.tooManyOpenFiles` if the process's descriptors are used up.
  package init(of signals: [Signal]) throws(Errno) {
    counter = try FileDescriptor.wakeUpCounter()
    let isFirst = SignalInbox.counter.compareExchange(
      expected: -1, desired: counter.rawValue, ordering: .sequentiallyConsistent
    ).exchanged
    precondition(isFirst, "a process receives its signals in one place at a time")
    _ = SignalInbox.takeAll()
    for signal in signals {
      var action = sigaction()
      action.sa_flags = SA_SIGINFO | SA_RESTART
      action.__sigaction_handler.sa_sigaction = SignalInbox.receive
      var old = sigaction()
      // Fails only for numbers that are not signals or cannot be caught (sigaction(2)).
      _ = sigaction(signal.rawValue, nil, &old)
      guard !old.isIgnoring || signal == .continue else { continue }
      _ = sigaction(signal.rawValue, &action, nil)
      previous.append((signal, old))
    }
  }

  deinit {
    for (signal, action) in previous {
      var action = action
      _ = sigaction(signal.rawValue, &action, nil)
    }
    SignalInbox.counter.store(-1, ordering: .sequentiallyConsistent)
  }

  /// A descriptor that becomes readable when signals have arrived.
  package var descriptor: Int32 { counter.rawValue }

  /// Takes the signals that have arrived; never blocks.
  package func take() throws(Errno) -> [Received] {
    try counter.lowerCounter()
    return SignalInbox.takeAll()
  }
}

extension sigaction {
  fileprivate var isIgnoring: Bool {
    // SIG_IGN is the address 1 (signal.h), which Swift cannot compare with a function.
    unsafeBitCast(__sigaction_handler.sa_handler, to: Int.self) == 1
  }
}

/// The record of the handler's calls; a handler may do only what signal-safety(7) lists.
private enum SignalInbox {
  static let counter = Atomic<Int32>(-1)
  /// One bit per signal number.
  private static let fromProcesses = Atomic<UInt64>(0)
  private static let fromKernel = Atomic<UInt64>(0)

  static let receive:
    @convention(c) (Int32, UnsafeMutablePointer<siginfo_t>?, UnsafeMutableRawPointer?) -> Void = {
      number, information, _ in
      let before = errno
      let bit = UInt64(1) << UInt64(number)
      // Positive codes come from the kernel (sigaction(2)).
      if let information, information.pointee.si_code > 0 {
        _ = SignalInbox.fromKernel.bitwiseOr(bit, ordering: .sequentiallyConsistent)
      } else {
        _ = SignalInbox.fromProcesses.bitwiseOr(bit, ordering: .sequentiallyConsistent)
      }
      var one: UInt64 = 1
      // Fails only for a counter at its maximum, which is raised anyway.
      _ = Glibc.write(SignalInbox.counter.load(ordering: .sequentiallyConsistent), &one, 8)
      errno = before
    }

  static func takeAll() -> [SignalReception.Received] {
    list(fromProcesses.exchange(0, ordering: .sequentiallyConsistent), true)
      + list(fromKernel.exchange(0, ordering: .sequentiallyConsistent), false)
  }

  private static func list(_ bits: UInt64, _ isFromProcess: Bool) -> [SignalReception.Received] {
    (1...31).filter { bits & (1 << UInt64($0)) != 0 }.compactMap(Signal.init(rawValue:)).map {
      SignalReception.Received(signal: $0, isFromProcess: isFromProcess)
    }
  }
}
