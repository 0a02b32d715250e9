public import Observation

/// A model for views and other observers in this process: its content follows a shared value, whichever
/// process changes it.
///
/// ```swift
/// import Wormhole
/// import Observation
///
/// @MainActor func follow(_ container: SharedContainer) throws {
///   let model = try ValueModel(container.value("seats", as: [Int].self))
///   withObservationTracking {
///     print(model.content ?? [])
///   } onChange: {
///     print("it is about to change")
///   }
/// }
/// ```
///
/// The main thread has to run its queue, as in every program with views: `dispatchMain()`, a run loop, or an
/// `async` main function that suspends.
@MainActor @Observable
public final class ValueModel<Content: Codable & Sendable> {
  /// The shared value, for changing it.
  @ObservationIgnored public let value: TypedValue<Content>
  /// The latest content; nil if there is none, and before the first look.
  public private(set) var content: Content?
  /// Why the latest content could not be read; then `content` is the previous one. Nil after the
  /// next readable content.
  public private(set) var failure: (any Error)?
  @ObservationIgnored private var following: Task<Void, Never>?

  /// Begins to follow the value, until the model is released.
  ///
  /// - Throws: `AppGroupError` if the container can no longer be used.
  public init(_ value: TypedValue<Content>) throws {
    self.value = value
    let snapshots = try value.value.snapshots(startsWithCurrent: true)
    following = Task { [weak self] in
      for await snapshot in snapshots {
        guard let self else { return }
        self.show(snapshot)
      }
    }
  }

  isolated deinit { following?.cancel() }

  private func show(_ snapshot: ValueSnapshot) {
    do {
      content = try snapshot.decode()
      failure = nil
    } catch {
      failure = error
    }
  }
}
