extension Duration {
  /// `0.5 s`, `8 s`.
  var shortText: String {
    let seconds = self / .seconds(1)
    return seconds == seconds.rounded() ? "\(Int(seconds)) s" : "\(seconds) s"
  }
}
