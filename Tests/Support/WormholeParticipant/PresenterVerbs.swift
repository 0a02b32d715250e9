import FoundationEssentials
import Synchronization
import Wormhole
import WormholeFiles
import WormholeFoundationClients
import WormholeSystem
import WormholeTestSupport

/// The verbs of a participant about presenters; a path is absolute and has no spaces.
///
/// ```
/// present PATH [MANNER]     presents the item in one of the manners of RecordingPresenter, or
///                           "listens": as a ListeningPresenter, or "declines": as a LockedNote
/// dismiss PATH              removes that presenter
/// heard PATH                the callbacks so far
/// ask KIND PATH             begins a conversation as a coordinator does before an access that is
///                           "reading", "current" (reading without changes) or an effect; answers
///                           "begun" with the states of the silent presenters
/// over KIND PATH            ends the conversation
/// moved OLD NEW             reports that an item was moved
/// wakeups -                 the number of wake-ups of the monitor's thread
/// ```
enum PresenterVerbs {
  static let all: Set<String> = ["present", "dismiss", "heard", "ask", "over", "moved", "wakeups"]
  private static let presenters = Mutex<[String: RecordingPresenter]>([:])
  private static let conversations = Mutex<[String: PresenterConversation]>([:])

  static func perform(_ verb: String, _ first: String, _ second: String?) throws -> String {
    switch verb {
    case "present" where second == "listens":
      // A registered presenter lives as long as the process.
      try FileCoordinator.addFilePresenter(ListeningPresenter(first))
    case "present" where second == "declines":
      LockedNote.present(URL(filePath: first))
    case "present":
      let manner = second.flatMap { RecordingPresenter.Manner(rawValue: $0) }
      let presenter = RecordingPresenter(first, manner ?? .answers)
      try FileCoordinator.addFilePresenter(presenter)
      presenters.withLock { $0[first] = presenter }
    case "dismiss":
      let presenter = presenters.withLock { $0.removeValue(forKey: first) }
      if let presenter { FileCoordinator.removeFilePresenter(presenter) }
    case "heard":
      return presenters.withLock { $0[first]?.heard ?? [] }.joined(separator: " ")
    case "wakeups": return "\(ChangeMonitor.shared.statistics.wakeUps)"
    case "ask": return try ask(first, second ?? "")
    case "over":
      let key = first + (second ?? "")
      conversations.withLock { $0.removeValue(forKey: key) }?.finish(published: [:])
    default: PresenterConversation.reportMove(from: first, to: second ?? "", by: nil)
    }
    return "done"
  }

  private static func ask(_ kind: String, _ path: String) throws -> String {
    let demand: AccessKind
    switch kind {
    case "reading": demand = .reading
    case "current": demand = .readingWithoutChanges
    default: demand = AccessKind(rawValue: kind) ?? .content
    }
    let conversation = try PresenterConversation.begin(
      [PresenterDemand(path: ItemPath(path), kind: demand)], for: nil, until: .now + .seconds(20))
    conversations.withLock { $0[kind + path] = conversation }
    return (["begun"] + conversation.silent.map(\.state.rawValue)).joined(separator: " ")
  }
}
