import AppGroup
import SystemCalls

/// The directories that an item is in. An access that deletes, moves or replaces one of them, or is
/// about to publish it, claims its contents, and then no access to them begins.
///
/// Both sides announce themselves first and look for each other then, so at least one of them sees
/// the other; the inner one gives way.
struct Containing {
  private var others: [ItemLocation: ClaimSurvey] = [:]

  enum Finding {
    case nobody
    case present(ClaimName, at: ItemLocation)
  }

  /// - Complexity: one look a directory between the item and the root.
  mutating func look(
    _ location: ItemLocation, purpose: String, now: ContinuousClock.Instant = .now
  ) throws -> Finding {
    for directory in location.containing {
      guard let site = try Self.site(of: directory) else {
        others[directory] = nil
        continue
      }
      let finding = try others[directory, default: ClaimSurvey()].look(
        at: site, purpose: purpose, now: now
      ) { $0.coversContents }
      // A dead or overdue claim is not waited for; the next access to the directory removes it.
      if case .present(let name) = finding { return .present(name, at: directory) }
    }
    return .nobody
  }

  mutating func watch(_ latch: WakeLatch) -> Bool {
    var wasComplete = true
    for directory in Array(others.keys) {
      wasComplete = others[directory]?.watch(latch) ?? true && wasComplete
    }
    return wasComplete
  }

  // A site that this user may not open belongs to another user, and so does the directory.
  private static func site(of directory: ItemLocation) throws -> ItemSite? {
    do {
      return try ItemSite.open(directory)
    } catch let error as Errno
      where [.accessDenied, .notDirectory, .tooManyLinks].contains(error)
    {
      return nil
    } catch let error as FileCoordinationError where error.code == .unsafe {
      return nil
    }
  }
}
