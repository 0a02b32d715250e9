import ConnectivityTesting
import Foundation
import WatchConnectivity

/// In a test of an app, its own delegate. Without one no session is activated, as on Apple's devices.
final class App: NSObject, WCSessionDelegate {
  func session(
    _ session: WCSession, activationDidCompleteWith state: WCSessionActivationState,
    error: (any Error)?
  ) {}
}

func aWatchThatDiesLosesNothing() async throws {
  let scene = try TestScene()
  let (phone, app) = (try scene.session(.phone), App())
  phone.delegate = app
  phone.activate()
  let watch = scene.counterpart(.watch, script: [.dies])
  try await watch.arrive()
  try await phone.waitUntil(\.isReachable)

  phone.sendMessage(["steps": 30], replyHandler: nil) { _ in
    // What an app does if a message fails.
    phone.transferUserInfo(["steps": 30])
  }
  // The message that it dies with.
  _ = try await watch.next()
  try await watch.arrive()
  let again = try await watch.next()
  print(again.kind == .userInfo, again.value)
  try await scene.end()
}
