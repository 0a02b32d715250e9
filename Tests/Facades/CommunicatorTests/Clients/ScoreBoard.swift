// Code that imports only Communicator, as its README shows it: the module re-exports Foundation. This is only
// compiled; its `try?` is how such code is written.
import Communicator

public final class ScoreBoard {
  private let defaults = UserDefaults.standard
  private let queue = DispatchQueue(label: "scores")

  public init() {}

  public func observe() {
    Context.observe { context in
      guard let score = context.content["score"] as? Int else { return }
      NSLog("score %@", "\(score)")
    }
    Blob.observe { blob in
      let data: Data = blob.content
      _ = try? JSONDecoder().decode([String: Int].self, from: data)
    }
  }

  public func send(_ score: Int, on date: Date = Date()) throws {
    try Communicator.shared.sync(Context(content: ["score": score, "date": date]))
  }
}
