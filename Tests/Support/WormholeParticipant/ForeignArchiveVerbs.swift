import Foundation

/// The verbs of a participant as a program with the original: it knows the place and the format of an
/// archive, and only Foundation.
///
/// ```
/// archive-write PATH TEXT        replaces the archive, as `writeToFile:atomically:` does
/// archive-overwrite PATH TEXT    writes into the file that is there
/// archive-alarm PATH TEXT        replaces it with an object of the program's own
/// archive-read PATH              its text, "nil" if there is none, or "unreadable"
/// archive-remove PATH            removes it
/// ```
enum ForeignArchiveVerbs {
  static func perform(_ verb: Substring, _ path: String, _ text: String) throws -> String {
    let place = URL(fileURLWithPath: path)
    switch verb {
    case "write": try archive(text as NSString).write(to: place, options: .atomic)
    case "overwrite": try archive(text as NSString).write(to: place)
    case "alarm": try archive(ForeignAlarm(text)).write(to: place, options: .atomic)
    case "remove": try FileManager.default.removeItem(at: place)
    default: return read(path)
    }
    return "done"
  }

  private static func archive(_ object: Any) throws -> Data {
    var data = try NSKeyedArchiver.archivedData(
      withRootObject: object, requiringSecureCoding: false)
    // Foundation on Linux archives a class only under its own name.
    while let place = data.range(of: Data("ForeignAlarm".utf8)) {
      data.replaceSubrange(place, with: Data("AbsentAlarms".utf8))
    }
    return data
  }

  private static func read(_ path: String) -> String {
    guard let data = FileManager.default.contents(atPath: path) else { return "nil" }
    do {
      let unarchiver = try NSKeyedUnarchiver(forReadingFrom: data)
      unarchiver.requiresSecureCoding = false
      unarchiver.setClass(ForeignAlarm.self, forClassName: "WormholeParticipant.AbsentAlarms")
      let object = unarchiver.decodeObject(forKey: NSKeyedArchiveRootObjectKey)
      if let text = object as? String { return text }
      if let alarm = object as? ForeignAlarm { return alarm.title }
      return (object as? [String: Any])?.keys.sorted().joined(separator: ",") ?? "unknown"
    } catch {
      return "unreadable"
    }
  }
}

/// An object of a class that no other program has, as "AbsentAlarms".
final class ForeignAlarm: NSObject, NSCoding {
  let title: String
  init(_ title: String) { self.title = title }
  init?(coder: NSCoder) { title = coder.decodeObject(forKey: "title") as? String ?? "" }
  func encode(with coder: NSCoder) { coder.encode(title, forKey: "title") }
}
