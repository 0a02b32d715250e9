import AppGroup
import PropertyLists

/// The content of the watch's face: the next show with a ticket, according to the phone's last
/// message.
enum Complication {
  private static var value: Value { Cinema.container.value("complication") }

  static func save(_ id: Int?) {
    do {
      try value.replace(with: id.map { PropertyListValue($0) } ?? "none")
    } catch {
      Cinema.log("\(error)")
    }
  }

  /// Returns the film on the watch's face, or nil if there is none.
  static func movie() -> Movie? {
    do {
      return try value.snapshot().propertyList()?.intValue.flatMap { Movie.of($0) }
    } catch {
      Cinema.log("\(error)")
      return nil
    }
  }
}
