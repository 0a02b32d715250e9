import Foundation

private var volumeContext = 0

extension UserDefaults {
  // For Apple's systems it is `@objc dynamic`.
  var volume: Int { integer(forKey: "volume") }
  var title: String? { string(forKey: "title") }
}

/// An observer in both spellings, as such programs are written.
public final class VolumeObserver: NSObject {
  private let defaults: UserDefaults
  private let lock = NSLock()
  private var lines: [String] = []
  private var observations = Set<NSKeyValueObservation>()

  public override init() {
    defaults = UserDefaults.steps
    super.init()
    defaults.addObserver(
      self, forKeyPath: #"volume"#, options: [.initial, .old, .new], context: &volumeContext)
    observations.insert(
      defaults.observe(\.volume, options: [.new]) { [weak self] defaults, change in
        self?.note("property \(change.newValue ?? -1)")
      })
    observations.insert(
      defaults.observe(\UserDefaults.title, options: [.prior, .new]) { [weak self] _, change in
        guard let title = change.newValue else { return }
        self?.note("title \(title ?? "none")")
      })
  }

  deinit { defaults.removeObserver(self, forKeyPath: "volume", context: &volumeContext) }

  public override func observeValue(
    forKeyPath keyPath: String?, of object: Any?, change: [NSKeyValueChangeKey: Any]?,
    context: UnsafeMutableRawPointer?
  ) {
    guard context == &volumeContext, object as? UserDefaults == defaults else {
      super.observeValue(forKeyPath: keyPath, of: object, change: change, context: context)
      return
    }
    let isSetting = change?[.kindKey] as? UInt == NSKeyValueChange.setting.rawValue
    let old = change?[.oldKey] as? Int ?? (change?[.oldKey] is NSNull ? -1 : 0)
    note("\(keyPath ?? "") \(isSetting ? "\(old) \(change?[.newKey] as? Int ?? -1)" : "unset")")
  }

  private func note(_ line: String) {
    lock.lock()
    lines.append(line + (Thread.isMainThread ? "" : " elsewhere"))
    lock.unlock()
  }

  public func set(_ volume: Int) { defaults.set(volume, forKey: "volume") }
  public func set(_ title: String?) { defaults.set(title, forKey: "title") }

  /// Another object changes the volume while the observers are busy, and changes it back after this
  /// object has reported that. Returns the volume that an observer has heard last.
  public static func heardLast() -> Int {
    let (own, other) = (
      UserDefaults(suiteName: "group.com.example.steps")!,
      UserDefaults(suiteName: "group.com.example.steps")!
    )
    other.set(1, forKey: "volume")
    let (isBusy, mayGoOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let hasHeardOne = DispatchSemaphore(value: 0)
    let lock = NSLock()
    // Read and written under the lock.
    nonisolated(unsafe) var last = -1
    let observations = [
      own.observe(\.title, options: []) { _, _ in
        guard !Thread.isMainThread else { return }
        isBusy.signal()
        mayGoOn.wait()
      },
      own.observe(\.volume, options: [.initial, .new]) { _, change in
        lock.lock()
        last = change.newValue ?? -1
        lock.unlock()
        if change.newValue == 1 { hasHeardOne.signal() }
      },
    ]
    hasHeardOne.wait()
    other.set("tea", forKey: "title")
    isBusy.wait()
    other.set(2, forKey: "volume")
    own.set(5, forKey: "other")
    other.set(1, forKey: "volume")
    mayGoOn.signal()
    _ = hasHeardOne.wait(timeout: .now() + 10)
    lock.lock()
    let heard = last
    lock.unlock()
    for observation in observations { observation.invalidate() }
    return heard
  }

  public func stop() {
    defaults.removeObserver(self, forKeyPath: "volume")
    for observation in observations { observation.invalidate() }
  }

  public var heard: String {
    lock.lock()
    defer { lock.unlock() }
    return lines.joined(separator: "; ")
  }
}
