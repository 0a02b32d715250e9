import Communicator
import Foundation

/// The code of the README and the example app of Communicator 4.1, call by call and in its
/// spellings, so that a missing name does not compile. It never runs.
///
/// On Linux the parts for iOS only and for watchOS only stand side by side.
enum ReadmeCode {
  static func quickStart() {
    let message = ImmediateMessage(identifier: "1234", content: ["messageKey": "This is content"])
    Communicator.shared.send(message)

    switch Communicator.shared.currentReachability {
    case .immediateMessaging: Communicator.shared.send(message)
    default: break
    }

    ImmediateMessage.observe { message in
      guard message.identifier == "1234" else { return }
      print("Message received!", message)
    }
    Reachability.observe { reachability in
      print("Reachability changed!", reachability)
    }
    let observation = Reachability.observe { _ in }
    Reachability.unobserve(observation)
  }

  static func states() {
    let reachability = Communicator.shared.currentReachability
    let state = Communicator.shared.currentState
    let watchState = Communicator.shared.currentWatchState
    let phoneState = Communicator.shared.currentPhoneState
    print(reachability, state, watchState, phoneState)

    Communicator.State.observe { state in print("Activation state changed: ", state) }
    WatchState.observe { state in print("Watch state changed: ", state) }
    PhoneState.observe { state in print("Phone state changed: ", state) }

    switch watchState {
    case .notPaired: print("Watch is not paired")
    case .paired(let appState):
      switch appState {
      case .notInstalled: print("App is not installed")
      case .installed(let complicationState, let url):
        switch complicationState {
        case .notEnabled: print("Complication is not enabled", url as Any)
        case .enabled(let numberOfUpdates): print("Updates left", numberOfUpdates)
        }
      }
    }
    switch phoneState {
    case .notPaired: break
    case .paired(.installed): break
    case .paired(.notInstalled): break
    }
    switch state {
    case .notActivated, .inactive, .activated: break
    }
    switch reachability {
    case .notReachable, .backgroundOnly, .immediatelyReachable: break
    }
  }

  static func immediateMessages() {
    let content: Content = ["TotalDistanceTravelled": 10000.00]
    let message = ImmediateMessage(identifier: "JourneyComplete", content: content)
    Communicator.shared.send(message) { error in
      print("Error sending immediate message", error)
    }
    ImmediateMessage.observe { message in
      if message.identifier == "JourneyComplete" { print(message.content) }
    }
  }

  static func interactiveMessages() {
    let message = InteractiveImmediateMessage(identifier: "message", content: ["hello": "world"])
    Communicator.shared.send(message) { error in
      if case Communicator.Error.sessionIsNotReachable(let minimum, let actual) = error {
        print(minimum, actual)
      }
    }
    InteractiveImmediateMessage.observe { message in
      guard message.identifier == "message" else { return }
      let replyMessage = ImmediateMessage("identifier", content: ["reply": "message"])
      message.reply(replyMessage)
    }
    let asking = InteractiveImmediateMessage(
      identifier: "interactive_message", content: ["hello": "world"]
    ) { reply in
      print("Received reply from message: \(reply)")
    }
    Communicator.shared.send(asking)
  }

  static func guaranteedMessages() {
    let content: Content = ["CaloriesBurnt": 400.00]
    let message = GuaranteedMessage(identifier: "WorkoutComplete", content: content)
    Communicator.shared.send(message) { result in
      switch result {
      case .failure(let error): print("Error: \(error.localizedDescription)")
      case .success: print("Successfully transferred guaranteed message")
      }
    }
    GuaranteedMessage.observe { message in
      if message.identifier == "CaloriesBurnt" {
        let content = message.content
        print(content)
      }
    }
  }

  static func blobs(data: Data) {
    let largeData: Data = data
    let blob = Blob(identifier: "JourneyHistory", content: largeData)
    Communicator.shared.transfer(blob: blob) { result in print(result) }
    let task = Communicator.shared.transfer(blob) { result in print(result) }
    task?.cancel()

    let metadata = ["DateGenerated": Date()]
    let blobWithMetadata = Blob(identifier: "JourneyHistory", content: data, metadata: metadata)
    Communicator.shared.transfer(blobWithMetadata)
    Blob.observe { blob in
      if blob.identifier == "JourneyHistory" {
        let journeyHistoryData: Data = blob.content
        print(journeyHistoryData, blob.metadata as Any)
      }
    }
  }

  static func contexts() {
    let content: Content = ["ShowTotalDistance": true]
    let context = Context(content: content)
    do {
      try Communicator.shared.sync(context)
    } catch {
      print("Error syncing context: \(error.localizedDescription)")
    }
    Content.observe { context in
      if let shouldShowTotalDistance = context.content["ShowTotalDistance"] as? Bool {
        print("Show total distance setting changed: \(shouldShowTotalDistance)")
      }
    }
    let observation = Context.observe { context in print("Received context: ", context) }
    Content.unobserve(observation)
    let sent = Communicator.shared.mostRecentlySentContext
    let received = Communicator.shared.mostRecentlyReceivedContext
    // The name in the original's source.
    let same = Communicator.shared.mostRecentlyReceievedContext
    print(sent.content, received.content, same.content)
  }

  static func complications() {
    let content: Content = ["NumberOfStepsWalked": 1000]
    let complicationInfo = ComplicationInfo(content: content)
    Communicator.shared.transfer(complicationInfo) { result in
      switch result {
      case .success(let numberOfUpdatesAvailable): print("Left", numberOfUpdatesAvailable)
      case .failure(let error): print("Failed", error.localizedDescription)
      }
    }
    ComplicationInfo.observe { complicationInfo in
      print("Received complication info: ", complicationInfo)
    }
  }

  /// Handlers in constants of the types that the source declares, and custom queues.
  static func declaredTypes(queue: DispatchQueue) {
    let completion: GuaranteedMessage.Completion = { result in print(result) }
    let cancellable: (any Cancellable)? = Communicator.shared.send(
      GuaranteedMessage(identifier: "empty"), completion: completion)
    cancellable?.cancel()
    let errorHandler: ImmediateMessage.ErrorHandler = { error in print(error) }
    Communicator.shared.send(ImmediateMessage(identifier: "empty"), errorHandler: errorHandler)
    let observation: Observation = Blob.observe(queue: queue) { blob in print(blob) }
    Blob.unobserve(observation)
    print(Communicator.shared.hasPendingDataToBeReceived)
  }
}

/// The same as a class of an app, the usual form: handlers that use the members of their class.
@MainActor
final class ReadmeObserver {
  private var journeys = 0

  func observe() {
    GuaranteedMessage.observe(queue: .main) { [weak self] message in
      Task { @MainActor in self?.handle(message) }
    }
  }

  private func handle(_ message: GuaranteedMessage) { journeys += message.content.count }
}
