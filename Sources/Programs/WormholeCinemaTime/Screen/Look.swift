import WormholeWorkshop

/// The looks of the screen's parts.
enum Look {
  static let title = CellStyle("1", withoutColours: "1")
  static let faint = CellStyle("2")
  static let time = CellStyle("36")
  static let key = CellStyle("1;36", withoutColours: "1")
  static let selection = CellStyle("1;97;44", withoutColours: "7")
  static let currentTab = CellStyle("1;36", withoutColours: "1")
  static let good = CellStyle("32", withoutColours: "1")
  static let bad = CellStyle("1;31", withoutColours: "1")
  static let notice = CellStyle("33")
  static let question = CellStyle("1;33", withoutColours: "1")
  static let strap = CellStyle("90")
  /// Black and white, which are the picture and no decoration: a terminal with dark letters on white would
  /// invert it, and some readers cannot read that.
  static let code = CellStyle("97;40", withoutColours: "97;40")

  /// The two sides differ in colour, because they are often seen side by side.
  static func frame(isPhone: Bool) -> CellStyle { CellStyle(isPhone ? "36" : "35") }

  static func name(isPhone: Bool) -> CellStyle {
    CellStyle(isPhone ? "1;36" : "1;35", withoutColours: "1")
  }

  static func bar(isPhone: Bool) -> CellStyle {
    CellStyle(isPhone ? "1;30;46" : "1;30;45", withoutColours: "7")
  }
}
