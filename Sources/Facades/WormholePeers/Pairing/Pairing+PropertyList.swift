import WormholePropertyLists

extension Pairing.State {
  /// `companions`, a list of dictionaries with `name`, `isAppInstalled` and `isComplicationEnabled`;
  /// `active`, a name, if one is.
  var propertyList: PropertyListValue {
    var value: PropertyListValue = [
      "companions": .array(
        companions.map { companion in
          [
            "name": .string(companion.name),
            "isAppInstalled": .boolean(companion.isAppInstalled),
            "isComplicationEnabled": .boolean(companion.isComplicationEnabled),
          ]
        })
    ]
    if let activeName { value["active"] = .string(activeName) }
    return value
  }

  /// Reads the value that another process, or a person, has written; nil for any other shape.
  init?(_ value: PropertyListValue) {
    guard let list = value["companions"]?.arrayValue else { return nil }
    companions = []
    for entry in list {
      guard let name = entry["name"]?.stringValue else { return nil }
      companions.append(
        Pairing.Companion(
          name: name, isAppInstalled: entry["isAppInstalled"]?.boolValue ?? true,
          isComplicationEnabled: entry["isComplicationEnabled"]?.boolValue ?? true))
    }
    activeName = value["active"]?.stringValue
    if active == nil { activeName = nil }
  }
}
