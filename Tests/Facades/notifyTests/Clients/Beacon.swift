import Foundation
import notify

private var caught: sig_atomic_t = 0

/// Registrations under words of the test, in the spelling of notify(3).
public final class Beacon {
  public static let shared = Beacon()

  private var tokens: [String: Int32] = [:]
  private var descriptors: [String: Int32] = [:]
  private var calls: [String] = []
  private let queue = DispatchQueue(label: "beacon")

  public var heard: String { queue.sync { calls.joined(separator: " ") } }

  public func post(_ name: String?) -> UInt32 {
    guard let name = name else { return notify_post(nil) }
    let status = notify_post(name)
    guard status == NOTIFY_STATUS_OK else { return status }
    return 0
  }

  public func check(_ word: String, _ name: String) -> UInt32 {
    var token: Int32 = NOTIFY_TOKEN_INVALID
    let status = notify_register_check(name, &token)
    tokens[word] = token
    return status
  }

  public func dispatch(_ word: String, _ name: String) -> UInt32 {
    var token: Int32 = NOTIFY_TOKEN_INVALID
    let status = name.withCString { cName in
      notify_register_dispatch(cName, &token, queue) { [weak self] token in
        guard let self = self else { return }
        if word == "once" { notify_cancel(token) }
        self.calls.append(word)
      }
    }
    tokens[word] = token
    return status
  }

  public func registerSignal(_ word: String, _ name: String, _ number: Int32) -> UInt32 {
    var token: Int32 = 0
    signal(SIGUSR1) { _ in caught += 1 }
    let status = notify_register_signal(name, number, &token)
    tokens[word] = token
    return status
  }

  public var signals: Int { Int(caught) }

  public func descriptor(_ word: String, _ name: String, of other: String? = nil) -> UInt32 {
    var token: Int32 = 0
    var fd: Int32 = other.map { descriptors[$0] ?? 0 } ?? -1
    let flags = other == nil ? 0 : NOTIFY_REUSE
    let status = notify_register_file_descriptor(name, &fd, flags, &token)
    if status == UInt32(NOTIFY_STATUS_OK) { (tokens[word], descriptors[word]) = (token, fd) }
    return status
  }

  /// The word of the token that comes out of a descriptor.
  public func readToken(_ word: String) -> String {
    guard let fd = descriptors[word], fcntl(fd, F_GETFD) != -1 else { return "closed" }
    var token: Int32 = 0
    let count = read(fd, &token, MemoryLayout<Int32>.size)
    guard count == MemoryLayout<Int32>.size else { return "\(count) bytes" }
    token = Int32(bigEndian: token)
    return tokens.first { $0.value == token }?.key ?? "unknown"
  }

  public func isPosted(_ word: String) -> String {
    var check: Int32 = -1
    let status = notify_check(tokens[word] ?? NOTIFY_TOKEN_INVALID, &check)
    return status == UInt32(NOTIFY_STATUS_OK) ? "\(check)" : "status \(status)"
  }

  public func state(_ word: String) -> String {
    var state: UInt64 = 99
    let status = notify_get_state(tokens[word] ?? NOTIFY_TOKEN_INVALID, &state)
    return status == UInt32(NOTIFY_STATUS_OK) ? "\(state)" : "status \(status)"
  }

  public func set(_ word: String, _ state: UInt64) -> UInt32 {
    notify_set_state(tokens[word] ?? NOTIFY_TOKEN_INVALID, state)
  }

  public func suspend(_ word: String) -> UInt32 {
    notify_suspend(tokens[word] ?? NOTIFY_TOKEN_INVALID)
  }

  public func resume(_ word: String) -> UInt32 {
    notify_resume(tokens[word] ?? NOTIFY_TOKEN_INVALID)
  }

  public func cancel(_ word: String) -> UInt32 {
    notify_cancel(tokens[word] ?? NOTIFY_TOKEN_INVALID)
  }

  /// How many words have a token, how many of these differ, and how many are valid.
  public var numbers: String {
    let valid = tokens.values.filter { notify_is_valid_token($0) }.count
    return "\(tokens.count) \(Set(tokens.values).count) \(valid)"
  }

  /// The statuses of calls that lack something.
  public var refusals: String {
    var token: Int32 = 7
    var fd: Int32 = 0
    let statuses = [
      notify_register_check(nil, &token), notify_register_check("a", nil),
      notify_register_dispatch("a", &token, nil) { _ in },
      notify_register_signal("a", 0, &token),
      notify_register_file_descriptor("a", nil, 0, &token),
      notify_register_file_descriptor("a", &fd, NOTIFY_REUSE, &token),
      notify_check(-5, &token), notify_check(1, nil), notify_get_state(1, nil),
    ]
    return statuses.map(String.init).joined(separator: " ") + " \(token)"
  }
}
