/// A QR code: square, each module dark or light, by ISO/IEC 18004, in byte mode.
public struct QRSymbol: Sendable, Equatable {
  /// Rows of modules, without the light margin of four that belongs around it; true is dark.
  public let rows: [[Bool]]
  /// 1 to 40.
  public let version: Int
  /// How much of it may be damaged.
  public let level: QRCorrectionLevel

  /// Modules on each side.
  public var size: Int { rows.count }

  /// Encodes bytes, in the smallest version that holds them and with the best of the eight masks.
  ///
  /// - Returns: nil for more than fits: 2,953 bytes at level L, 1,273 at level H.
  public init?(_ bytes: some Collection<UInt8>, level: QRCorrectionLevel) {
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
  public init?(_ text: String, level: QRCorrectionLevel) {
    self.init(Array(text.utf8), level: level)
  }
}
