/// A QR code in byte mode by ISO/IEC 18004: a square of dark and light modules.
struct QRSymbol: Sendable, Equatable {
  /// The rows of modules, without the surrounding light margin of four; true is dark.
  let rows: [[Bool]]
  /// The version, from 1 to 40.
  let version: Int
  /// The share of the symbol that may be damaged.
  let level: QRCorrectionLevel

  /// The number of modules on each side.
  var size: Int { rows.count }

  /// Encodes bytes in the smallest version that holds them, with the best of the eight masks.
  ///
  /// - Returns: nil if there are too many bytes: more than 2,953 at level L, 1,273 at level H.
  init?(_ bytes: some Collection<UInt8>, level: QRCorrectionLevel) {
    guard let version = QRCodewords.version(forBytes: bytes.count, level) else { return nil }
    var modules = QRModules(version)
    modules.draw(QRCodewords.all(Array(bytes), version, level))
    let masked = QRMask.all.map { mask -> (penalty: Int, rows: [[Bool]]) in
      var candidate = modules
      candidate.apply(mask)
      candidate.drawFormat(QRInformation.format(level, mask))
      return (QRPenalty.of(candidate.isDark), candidate.isDark)
    }
    guard let best = masked.min(by: { $0.penalty < $1.penalty }) else { return nil }
    rows = best.rows
    self.version = version.number
    self.level = level
  }

  /// Encodes a text as UTF-8; see the form for bytes.
  init?(_ text: String, level: QRCorrectionLevel) { self.init(Array(text.utf8), level: level) }
}
