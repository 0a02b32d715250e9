// Handlers as code of Swift 5 keeps and passes them: of types without `@Sendable`. This is only compiled.
import Communicator

public final class ScoreKeeper {
  public var score = 0
  private var answers: [(ImmediateMessage) -> Void] = []
  private let update: (Int) -> Void

  public init(update: @escaping (Int) -> Void) {
    self.update = update
  }

  public func observe(_ handler: @escaping (GuaranteedMessage) -> Void) {
    var count = 0
    GuaranteedMessage.observe { message in
      count += 1
      handler(message)
    }
    GuaranteedMessage.observe(queue: .main, handler: handler)
    InteractiveImmediateMessage.observe { message in
      self.answers.append(message.reply)
      self.update(count)
    }
    WatchState.observe { _ in self.score += 1 }
  }

  public func ask(_ reply: @escaping (ImmediateMessage) -> Void, _ fail: @escaping (Error) -> Void)
  {
    let message = InteractiveImmediateMessage(identifier: "score", reply: reply)
    Communicator.shared.send(message, errorHandler: fail)
    Communicator.shared.send(GuaranteedMessage(identifier: "asked")) { result in
      if case .failure = result { self.score -= 1 }
    }
  }
}
