/// Coordinates accesses to files among processes.
public final class FileCoordinator: Sendable {}
