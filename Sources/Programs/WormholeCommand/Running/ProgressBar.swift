import PeerConnectivity
import Synchronization

/// A line on a terminal that shows the progress of a file.
final class ProgressBar: Sendable {
  private let file: String
  private let columns: Int
  private let write: @Sendable ([UInt8]) -> Void
  private let hasEnded = Mutex(false)

  private static let barColumns = 24

  init(file: String, columns: Int, write: @escaping @Sendable ([UInt8]) -> Void) {
    self.file = file.withoutControlCharacters.replacing("\n", with: "\\n")
    self.columns = columns
    self.write = write
  }

  func show(_ progress: PeerFileProgress) {
    let text = line(completed: progress.completedBytes, total: progress.totalBytes)
    // The lock excludes that a last report from another thread comes after the line was cleared.
    hasEnded.withLock { if !$0 { write(Array("\r\(text)".utf8)) } }
  }

  /// Clears the line for the next output.
  func end() {
    hasEnded.withLock {
      $0 = true
      write(Array("\r\u{1B}[K".utf8))
    }
  }

  /// `[########----------------]  33 %  12 of 36 MB  film.mov`, cut to the width of the terminal.
  func line(completed: Int64, total: Int64) -> String {
    let fraction = total > 0 ? min(max(Double(completed) / Double(total), 0), 1) : 1
    let full = Int(fraction * Double(Self.barColumns))
    let bar =
      String(repeating: "#", count: full) + String(repeating: "-", count: Self.barColumns - full)
    let percent = String(Int(fraction * 100))
    let padding = String(repeating: " ", count: 3 - percent.count)
    let text =
      "[\(bar)] \(padding)\(percent) %  \(completed / 1_000_000) of \(total / 1_000_000) MB  \(file)"
    // The last column stays empty: some terminals wrap when it is filled.
    return String(text.prefix(max(columns - 1, 1)))
  }
}
