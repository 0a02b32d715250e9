// On Apple's systems the name is Foundation's, so code that uses it imports that.
@_exported public import Foundation
@_exported public import GroupDefaults

/// `UserDefaults` as on Apple's systems: `UserDefaults(suiteName:)` is shared by all processes of the
/// group. It is `GroupDefaults`, which loses no write of another process.
///
/// One line in any file of a target replaces Foundation's class in all of the target's files:
///
/// ```swift
/// @_exported import class SharedUserDefaults.UserDefaults
/// ```
///
/// A file that does not import Foundation itself needs only `import SharedUserDefaults`.
public typealias UserDefaults = GroupDefaults

extension GroupDefaults {
  /// Posted to `NotificationCenter.default` after each change that this process makes, on the
  /// thread that makes it; the object is the changed `UserDefaults`. As in the original, changes of
  /// other processes are not posted: `observe` and `changes()` report them, too.
  ///
  /// Changes are posted after the first use of this name, because observers have to use it.
  public static var didChangeNotification: NSNotification.Name {
    isPosting
    return Foundation.UserDefaults.didChangeNotification
  }

  private static let isPosting: Void = observeOwnChanges { defaults in
    NotificationCenter.default.post(
      name: Foundation.UserDefaults.didChangeNotification, object: defaults)
  }
}
