// The hooks are a target of their own; reports about other processes are here.
package import WormholeSystem

extension Diagnostics {
  /// Reports that something was taken over from another process.
  ///
  /// - Parameter what: a word.
  package static func noteTakeover(
    of what: String, _ path: @autoclosure () -> String,
    from holder: @autoclosure () -> LeaseHolder?,
    in container: @autoclosure () -> String? = nil
  ) {
    guard isWanted else { return }
    let (path, holder) = (path(), holder())
    let (victim, holding) =
      holder.map { ("\($0)", $0.holding) } ?? ("an unknown process", "held by an unknown process")
    note(
      .takeover, at: .notice, "took over the \(what) of \(path), \(holding)", in: container(),
      dimensions: ["what": what, "state": (holder?.state ?? .unknown).rawValue],
      fields: ["path": path, "from": victim])
  }

  /// Reports a wait for a command that its user has stopped at a terminal.
  ///
  /// - Parameter what: a word.
  package static func notePatience(
    with holder: LeaseHolder, forThe what: String, _ path: String, lasting time: Duration
  ) {
    note(
      .patience, at: .notice,
      "\(holder), has the \(what) of \(path), and was stopped at its terminal: it loses it in "
        + "\(time.tenthsOfSeconds) s, unless it is continued (fg)", lasting: time,
      dimensions: ["what": what], fields: ["path": path, "from": "\(holder)"])
  }
}

/// Measures one wait for other processes, and reports it when it has ended.
package struct WaitMeter {
  private var began: ContinuousClock.Instant?

  package init() {}

  /// Takes a step of the wait.
  ///
  /// - Parameter what: the awaited thing: a word.
  package mutating func take<Outcome>(
    _ what: String, path: @autoclosure () -> String, in container: @autoclosure () -> String? = nil,
    _ step: () throws -> WaitingStep<Outcome>
  ) rethrows -> WaitingStep<Outcome> {
    do {
      let result = try step()
      switch result {
      case .wait: began = began ?? .now
      case .done: note(what, path(), container(), "done")
      case .spin, .handOver: break
      }
      return result
    } catch {
      let code = (error as? WormholeError)?.code.rawValue
      note(what, path(), container(), code ?? "failed")
      throw error
    }
  }

  private mutating func note(
    _ what: String, _ path: @autoclosure () -> String, _ container: @autoclosure () -> String?,
    _ outcome: String
  ) {
    // A request that succeeded at once has not waited.
    guard let began = began.take() else { return }
    let duration = ContinuousClock.now - began
    Diagnostics.note(
      .wait, at: .debug, "waited \(duration.tenthsOfSeconds) s for the \(what) of \(path())",
      in: container(), lasting: duration, dimensions: ["what": what, "outcome": outcome],
      fields: ["path": path()])
  }
}
