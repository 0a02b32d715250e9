import AppGroup
import PropertyLists

/// What the watch's face shows: the next show for which there is a ticket, as the phone said last.
enum Complication {
  private static var value: Value { Cinema.container.value("complication") }

  static func save(_ id: Int?) {
    do {
      try value.replace(with: id.map { PropertyListValue($0) } ?? "none")
    } catch {
      Cinema.log("\(error)")
    }
  }

  /// The film on the watch's face; nil for none.
  static func movie() -> Movie? {
    do {
      return try value.snapshot().propertyList()?.intValue.flatMap { Movie.of($0) }
    } catch {
      Cinema.log("\(error)")
      return nil
    }
  }
}
