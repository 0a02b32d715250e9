import Synchronization

/// What this process remembers about the names of a container. All objects of one name share it, because
/// programs make an object for each operation.
final class NameMemories<Memory: Sendable>: Sendable {
  private let memories = Mutex<[String: Memory]>([:])
  private let make: @Sendable () -> Memory
  /// Forgetting costs the next operation a look at the directory.
  private static var limit: Int { 64 }

  init(_ make: @escaping @Sendable () -> Memory) { self.make = make }

  /// - Parameter path: The directory of the name, relative to the container.
  func memory(of path: String) -> Memory {
    memories.withLock { memories in
      if let known = memories[path] { return known }
      if memories.count >= Self.limit { memories = [:] }
      let memory = make()
      memories[path] = memory
      return memory
    }
  }
}
