#if canImport(ConnectivityTesting)
  import ConnectivityTesting
  import Testing
  import WatchConnectivity
  import WormholeStepCounter

  @Suite struct StepCounterTests {
    // A delegate's method, called by the test: no session sends anything.
    @Test func countsWhatItGets() throws {
      let scene = try TestScene()
      let counter = StepCounter()
      try counter.session(scene.session(.phone), didReceiveUserInfo: ["steps": 7])
      #expect(counter.total == 7)
    }

    // Both sides in this process, each with a session of its own.
    @Test func replies() async throws {
      let scene = try TestScene()
      let (phone, watch) = try (scene.session(.phone), scene.session(.watch))
      let (counter, wrist) = (StepCounter(), StepCounter())
      phone.asDefault { counter.start() }
      watch.asDefault { wrist.start() }
      try await phone.waitUntil(\.isReachable)
      let total = await withCheckedContinuation { continuation in
        phone.asDefault { counter.send(12) { continuation.resume(returning: $0) } }
      }
      #expect(total == 12 && wrist.total == 12)
      try await scene.end()
    }

    // A watch that dies in the middle of its reply: the steps come when it is back.
    @Test func losesNoSteps() async throws {
      let scene = try TestScene()
      let phone = try scene.session(.phone)
      let counter = StepCounter()
      phone.asDefault { counter.start() }
      let watch = scene.counterpart(.watch, script: [.dies])
      try await watch.arrive()
      try await phone.waitUntil(\.isReachable)
      phone.asDefault { counter.send(30) { _ in } }
      #expect(try await watch.next().value == ["steps": 30])
      try await watch.arrive()
      let again = try await watch.next()
      #expect(again.kind == .userInfo && again.value == ["steps": 30])
      try await scene.end()
    }
  }
#endif
