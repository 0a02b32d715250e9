/// What a primitive remembers about a container in this process, for all objects of its names: see
/// `ContainerRoot.memory`. The root has one object of each type, and knows no primitive.
protocol ContainerMemory: AnyObject, Sendable {
  init()

  /// Looks at the container's directory: at first, and with each check of its path, once a second.
  func look(at handle: ContainerRoot.Handle)

  /// Closes what is open: a second after a change, and if the container was replaced.
  func closeAll()
}

extension ContainerMemory {
  func look(at handle: ContainerRoot.Handle) {}
  func closeAll() {}
}
