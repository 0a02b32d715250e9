import WormholeSeam
import WormholeSystem

/// A schedule as a file of choices, and as columns.
extension Schedule {
  /// The text of a file that repeats it.
  func text(violation: String) -> String {
    var lines = violation.split(separator: "\n").map { "# \($0)" } + ["plan \(plan.text)"]
    if let mutant = plan.mutant { lines.append("mutant \(mutant)") }
    lines += choices.map { "\($0.step) \($0.action) \($0.process)" }
    return lines.joined(separator: "\n") + "\n"
  }

  init(text: String) throws {
    var (plan, mutant, choices) = ("", String?.none, [Choice]())
    for line in text.split(separator: "\n") where !line.hasPrefix("#") {
      let words = line.split(separator: " ", maxSplits: line.hasPrefix("plan") ? 1 : 3)
      switch words[0] {
      case "plan": plan = String(words[1])
      case "mutant": mutant = String(words[1])
      default:
        guard words.count == 3, let step = Int(words[0]), let process = Int(words[2]),
          let action = Choice.Action.allCases.first(where: { "\($0)" == words[1] })
        else { throw Failure("not a choice: \(line)") }
        choices.append(Choice(step: step, action: action, process: process))
      }
    }
    self.init(plan: Plan(plan, mutant: mutant), choices: choices)
  }
}

/// The last schedule that a runner has run, with a column for each process.
func columns(_ outcome: Outcome) -> String {
  let width = 54
  var lines: [String] = []
  var choices = outcome.choices[...]
  for index in 0..<outcome.steps {
    let step = seam_step_at(Int32(index))
    while let choice = choices.first, choice.step <= index {
      lines.append("        ── \(choice.action) \(choice.process)")
      choices.removeFirst()
    }
    var text = String(cString: seam_call_name(Int32(step.call)))
    let place = String(cString: seam_step_text(Int32(index)))
    if !place.isEmpty { text += " " + place.replacing("c/", with: "", maxReplacements: 1) }
    if step.waits != 0 { text += " …" }
    if step.result < 0 { text += " (\(Errno(rawValue: -step.result)))" }
    let time = "\(step.time / 1_000_000).\(step.time / 100_000 % 10)"
    let indent = String(repeating: " ", count: Int(step.process) * width)
    let number = String(repeating: " ", count: max(0, 4 - "\(index)".count)) + "\(index)"
    lines.append("\(number) \(time)\t\(indent)\(text)")
  }
  for (process, notes) in outcome.notes.enumerated() {
    for line in notes { lines.append("process \(process): \(line.joined(separator: " "))") }
  }
  return lines.joined(separator: "\n")
}
