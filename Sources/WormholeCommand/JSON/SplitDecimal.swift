/// A real as a whole number, rounded down, and the decimal digits that are to be added to it:
/// -0.25 is -1 and "75".
struct SplitDecimal {
  let whole: Int
  /// Without trailing zeros.
  let fraction: String

  init(whole: Int, fraction: String) {
    self.whole = whole
    self.fraction = Self.trimmed(fraction)
  }

  /// The shortest digits that read back as `real`, whose magnitude is below 2^53.
  init(_ real: Double) {
    precondition(real.magnitude < 0x1p53, "larger reals are printed with an exponent")
    let (whole, fraction) = Self.digits(of: real.magnitude)
    switch (real < 0, fraction.isEmpty) {
    case (false, _): self.init(whole: whole, fraction: fraction)
    case (true, true): self.init(whole: -whole, fraction: "")
    case (true, false): self.init(whole: -whole - 1, fraction: Self.complement(fraction))
    }
  }

  /// The nearest real.
  var value: Double {
    let text =
      whole >= 0 || fraction.isEmpty
      ? "\(whole).\(fraction.isEmpty ? "0" : fraction)"
      : "-\(-whole - 1).\(Self.complement(fraction))"
    guard let value = Double(text) else { preconditionFailure("'\(text)' is no decimal number") }
    return value
  }

  /// Splits "12.5", "5.0" and, for small numbers, "1.25e-07".
  private static func digits(of magnitude: Double) -> (whole: Int, fraction: String) {
    let parts = magnitude.description.split(separator: "e")
    let mantissa = parts[0].split(separator: ".")
    let whole = String(mantissa[0])
    let fraction = mantissa.count > 1 ? trimmed(String(mantissa[1])) : ""
    guard parts.count > 1, let exponent = Int(parts[1]), exponent < 0 else {
      return (Int(whole) ?? 0, fraction)
    }
    // With an exponent the mantissa has one digit before the point.
    return (0, String(repeating: "0", count: -exponent - 1) + whole + fraction)
  }

  /// The digits of 1 - 0.`fraction`; `fraction` does not end with 0.
  private static func complement(_ fraction: String) -> String {
    let nines = fraction.utf8.map { UInt8(ascii: "9") - ($0 - UInt8(ascii: "0")) }
    let last = nines.indices.last.map { nines[$0] + 1 }
    return String(decoding: nines.dropLast() + (last.map { [$0] } ?? []), as: UTF8.self)
  }

  private static func trimmed(_ digits: String) -> String {
    let kept = digits.utf8.reversed().drop { $0 == UInt8(ascii: "0") }.reversed()
    return String(decoding: Array(kept), as: UTF8.self)
  }
}
