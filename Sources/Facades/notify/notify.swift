// The functions and constants have the original's names.
// swift-format-ignore-file: AlwaysUseLowerCamelCase, TypeNamesShouldBeCapitalized

public import Dispatch
import Wormhole

/// The call succeeded: each function with a result returns this or another of these statuses.
public let NOTIFY_STATUS_OK: Int32 = 0
/// The name is missing, or is not UTF-8.
public let NOTIFY_STATUS_INVALID_NAME: Int32 = 1
/// No registration of this process has the token.
public let NOTIFY_STATUS_INVALID_TOKEN: Int32 = 2
/// The original's status of a Mach port; never returned.
public let NOTIFY_STATUS_INVALID_PORT: Int32 = 3
/// The descriptor is not one that an earlier registration returned.
public let NOTIFY_STATUS_INVALID_FILE: Int32 = 4
/// The number is not a signal's.
public let NOTIFY_STATUS_INVALID_SIGNAL: Int32 = 5
/// The original's status of a wrong request; never returned.
public let NOTIFY_STATUS_INVALID_REQUEST: Int32 = 6
/// The files of the center may not be used.
public let NOTIFY_STATUS_NOT_AUTHORIZED: Int32 = 7
/// The original's status of a child process; never returned.
public let NOTIFY_STATUS_OPT_DISABLE: Int32 = 8
/// The original's status without its daemon; never returned, because there is no daemon.
public let NOTIFY_STATUS_SERVER_NOT_FOUND: Int32 = 9
/// A pointer, a queue or a handler is missing.
public let NOTIFY_STATUS_NULL_INPUT: Int32 = 10
/// The call failed; an event of `Diagnostics` says why.
public let NOTIFY_STATUS_FAILED: Int32 = 1_000_000

/// No token.
public let NOTIFY_TOKEN_INVALID: Int32 = -1
/// Asks for the descriptor of an earlier registration instead of a new one.
public let NOTIFY_REUSE: Int32 = 1

/// A handler of notifications; it receives the token.
///
/// ```swift
/// let handler: notify_handler_t = { token in print("posted, for the registration", token) }
/// ```
public typealias notify_handler_t = (Int32) -> Void

/// Posts a name to all registrations in all of the user's processes, including this one.
///
/// - Parameter name: The name, in UTF-8.
/// - Returns: `NOTIFY_STATUS_OK`, even if there is no registration; `NOTIFY_STATUS_INVALID_NAME`,
///   or `NOTIFY_STATUS_FAILED`.
/// - Complexity: As `DarwinNotification.post()`.
@discardableResult
public func notify_post(_ name: UnsafePointer<CChar>!) -> UInt32 {
  withName(name) { name in
    try Registrations.center().postNotification(name: name)
    return NOTIFY_STATUS_OK
  }
}

/// Registers a name for `notify_check`.
///
/// - Parameters:
///   - name: The name, in UTF-8.
///   - out_token: Receives the token; `NOTIFY_TOKEN_INVALID` after a failure.
@discardableResult
public func notify_register_check(
  _ name: UnsafePointer<CChar>!, _ out_token: UnsafeMutablePointer<Int32>!
) -> UInt32 {
  register(name, out_token) { try Registrations.add($0, token: &$1) }
}

/// Calls a handler after each post of a name, or once after several in a row.
///
/// - Parameters:
///   - name: The name, in UTF-8.
///   - out_token: Receives the token, before the handler is called; `NOTIFY_TOKEN_INVALID` after a
///     failure.
///   - queue: The queue on which the handler is called, one call at a time.
///   - handler: Receives the token, which it may cancel.
/// - Returns: A status. No post after this function returns is missed.
@discardableResult
public func notify_register_dispatch(
  _ name: UnsafePointer<CChar>!, _ out_token: UnsafeMutablePointer<Int32>!, _ queue: DispatchQueue!,
  _ handler: notify_handler_t!
) -> UInt32 {
  guard let queue, let handler else { return UInt32(NOTIFY_STATUS_NULL_INPUT) }
  let block = Block(call: handler)
  return register(name, out_token) { name, token in
    try Registrations.add(name, token: &token, on: queue) { block.call($0) }
  }
}

/// Sends a signal to this process after each post of a name, or once after several in a row.
///
/// The program must catch the signal: the default action of most signals ends a process.
///
/// - Parameters:
///   - name: The name, in UTF-8.
///   - sig: The signal's number.
///   - out_token: Receives the token; `notify_check` then shows which name was posted.
@discardableResult
public func notify_register_signal(
  _ name: UnsafePointer<CChar>!, _ sig: Int32, _ out_token: UnsafeMutablePointer<Int32>!
) -> UInt32 {
  guard let signal = NotificationSignal(number: sig) else {
    return UInt32(NOTIFY_STATUS_INVALID_SIGNAL)
  }
  return register(name, out_token) { name, token in
    try Registrations.add(name, token: &token, handler: signal.handler)
  }
}

/// Writes the token to a pipe after each post of a name, or once after several in a row.
///
/// - Parameters:
///   - name: The name, in UTF-8.
///   - notify_fd: Receives the descriptor for reading, or has an earlier registration's. It is
///     closed with the last registration that uses it.
///   - flags: `NOTIFY_REUSE` for the descriptor of an earlier registration; otherwise 0.
///   - out_token: Receives the token, which is written as four bytes in network order.
/// - Returns: A status; `NOTIFY_STATUS_INVALID_FILE` for a descriptor of no registration.
@discardableResult
public func notify_register_file_descriptor(
  _ name: UnsafePointer<CChar>!, _ notify_fd: UnsafeMutablePointer<Int32>!, _ flags: Int32,
  _ out_token: UnsafeMutablePointer<Int32>!
) -> UInt32 {
  guard let notify_fd else { return UInt32(NOTIFY_STATUS_NULL_INPUT) }
  let isReused = flags & NOTIFY_REUSE != 0
  let known = isReused ? Registrations.pipe(at: notify_fd.pointee) : nil
  guard !isReused || known != nil else { return UInt32(NOTIFY_STATUS_INVALID_FILE) }
  return register(name, out_token) { name, token in
    let pipe = try known ?? TokenPipe()
    try Registrations.add(name, pipe: pipe, token: &token, handler: pipe.handler)
    notify_fd.pointee = pipe.readEnd
  }
}

/// Whether a name was posted since the last check of its token; true at the first check.
///
/// - Parameters:
///   - token: A token of any kind of registration.
///   - check: Receives 1 or 0.
/// - Complexity: As `NotificationRegistration.check()`.
@discardableResult
public func notify_check(_ token: Int32, _ check: UnsafeMutablePointer<Int32>!) -> UInt32 {
  guard let check else { return UInt32(NOTIFY_STATUS_NULL_INPUT) }
  return with(token) { check.pointee = try $0.check() ? 1 : 0 }
}

/// Ends a registration: a running handler may finish, and none begins afterwards on the
/// registration's queue. The token never becomes valid again.
@discardableResult
public func notify_cancel(_ token: Int32) -> UInt32 {
  UInt32(Registrations.remove(token) ? NOTIFY_STATUS_OK : NOTIFY_STATUS_INVALID_TOKEN)
}

/// Holds back a registration's notifications, until as many calls of `notify_resume` follow.
@discardableResult
public func notify_suspend(_ token: Int32) -> UInt32 { with(token) { try $0.suspend() } }

/// Ends one suspension. Posts since the first one are then delivered as one.
@discardableResult
public func notify_resume(_ token: Int32) -> UInt32 { with(token) { try $0.resume() } }

/// Sets the 64-bit state of a registration's name, for all processes; posts nothing.
///
/// - Parameters:
///   - token: The registration.
///   - state64: The new state.
/// - Complexity: As `DarwinNotification.setState(_:until:)`.
@discardableResult
public func notify_set_state(_ token: Int32, _ state64: UInt64) -> UInt32 {
  with(token) { try $0.setState(state64) }
}

/// Returns the 64-bit state of a registration's name; 0 if it was never set.
///
/// - Parameters:
///   - token: The registration.
///   - state64: Receives the state.
@discardableResult
public func notify_get_state(_ token: Int32, _ state64: UnsafeMutablePointer<UInt64>!) -> UInt32 {
  guard let state64 else { return UInt32(NOTIFY_STATUS_NULL_INPUT) }
  return with(token) { state64.pointee = try $0.state() }
}

/// Whether a registration of this process has the token.
///
/// - Parameter val: Any number.
/// - Returns: False after `notify_cancel`.
public func notify_is_valid_token(_ val: Int32) -> Bool { Registrations.find(val) != nil }

/// A client's block. `@unchecked`, because the original does not require a Sendable one either: it
/// is called on the queue that the client names for it, one call at a time.
private struct Block: @unchecked Sendable {
  let call: notify_handler_t
}

private func withName(
  _ name: UnsafePointer<CChar>?, _ body: (String) throws -> Int32
) -> UInt32 {
  guard let name, let name = String(validatingCString: name) else {
    return UInt32(NOTIFY_STATUS_INVALID_NAME)
  }
  do {
    return UInt32(try body(name))
  } catch {
    return failure(error)
  }
}

private func failure(_ error: any Error) -> UInt32 {
  Diagnostics.report(error)
  let isDenied = (error as? WormholeError)?.code == .permissionDenied
  return UInt32(isDenied ? NOTIFY_STATUS_NOT_AUTHORIZED : NOTIFY_STATUS_FAILED)
}

private func register(
  _ name: UnsafePointer<CChar>?, _ token: UnsafeMutablePointer<Int32>?,
  _ body: (String, inout Int32) throws -> Void
) -> UInt32 {
  guard let token else { return UInt32(NOTIFY_STATUS_NULL_INPUT) }
  let status = withName(name) { name in
    try body(name, &token.pointee)
    return NOTIFY_STATUS_OK
  }
  if status != NOTIFY_STATUS_OK { token.pointee = NOTIFY_TOKEN_INVALID }
  return status
}

private func with(
  _ token: Int32, _ body: (NotificationRegistration) throws -> Void
) -> UInt32 {
  guard let registration = Registrations.find(token) else {
    return UInt32(NOTIFY_STATUS_INVALID_TOKEN)
  }
  do {
    try body(registration)
    return UInt32(NOTIFY_STATUS_OK)
  } catch let error as WormholeError where error.code == .invalidToken {
    // Another thread has meanwhile cancelled it.
    return UInt32(NOTIFY_STATUS_INVALID_TOKEN)
  } catch {
    return failure(error)
  }
}
