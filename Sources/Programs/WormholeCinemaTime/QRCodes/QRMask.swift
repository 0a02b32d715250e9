/// One of the eight patterns that keep the data from looking like a function pattern (ISO/IEC
/// 18004, table 10).
struct QRMask: Equatable {
  /// From 0 to 7.
  let number: Int

  static let all = (0..<8).map { QRMask(number: $0) }

  func inverts(_ row: Int, _ column: Int) -> Bool {
    switch number {
    case 0: (row + column) % 2 == 0
    case 1: row % 2 == 0
    case 2: column % 3 == 0
    case 3: (row + column) % 3 == 0
    case 4: (row / 2 + column / 3) % 2 == 0
    case 5: row * column % 2 + row * column % 3 == 0
    case 6: (row * column % 2 + row * column % 3) % 2 == 0
    default: ((row + column) % 2 + row * column % 3) % 2 == 0
    }
  }
}

/// The penalty of a masked symbol for patterns that are hard to read; the mask with the lowest
/// penalty wins (ISO/IEC 18004, 7.8.3).
enum QRPenalty {
  static func of(_ rows: [[Bool]]) -> Int {
    let columns = rows.indices.map { column in rows.map { $0[column] } }
    return (rows + columns).reduce(0) { $0 + line($1) } + blocks(rows) + balance(rows)
  }

  /// 3 points for a run of five modules of one colour and one for each further module; 40 for a
  /// pattern like a finder's, 1:1:3:1:1 with dark first and four light modules, or the margin, on
  /// one side.
  private static func line(_ modules: [Bool]) -> Int {
    let runs = runs(of: modules)
    var points = runs.reduce(0) { $1.length >= 5 ? $0 + $1.length - 2 : $0 }
    for index in runs.indices where isFinder(runs, at: index) { points += 40 }
    return points
  }

  private static func isFinder(_ runs: [(isDark: Bool, length: Int)], at index: Int) -> Bool {
    guard runs[index].isDark, index >= 2, index + 2 < runs.count else { return false }
    let unit = runs[index].length / 3
    guard runs[index].length == 3 * unit,
      [-2, -1, 1, 2].allSatisfy({ runs[index + $0].length == unit })
    else { return false }
    // A light run at the edge continues in the margin.
    let isLightBefore = index <= 3 || runs[index - 3].length >= 4 * unit
    let isLightAfter = index + 4 >= runs.count || runs[index + 3].length >= 4 * unit
    return isLightBefore || isLightAfter
  }

  private static func runs(of modules: [Bool]) -> [(isDark: Bool, length: Int)] {
    var runs: [(isDark: Bool, length: Int)] = []
    for isDark in modules {
      if runs.last?.isDark == isDark {
        runs[runs.count - 1].length += 1
      } else {
        runs.append((isDark, 1))
      }
    }
    return runs
  }

  /// 3 points for each two-by-two square of one colour.
  private static func blocks(_ rows: [[Bool]]) -> Int {
    var count = 0
    for row in 1..<rows.count {
      for column in 1..<rows.count {
        let dark = rows[row][column]
        if rows[row - 1][column] == dark, rows[row][column - 1] == dark,
          rows[row - 1][column - 1] == dark
        {
          count += 1
        }
      }
    }
    return 3 * count
  }

  /// 10 points for each whole 5 % by which the share of dark modules differs from one half.
  private static func balance(_ rows: [[Bool]]) -> Int {
    let all = rows.count * rows.count
    let dark = rows.reduce(0) { $0 + $1.count { $0 } }
    return abs(20 * dark - 10 * all) / all * 10
  }
}
