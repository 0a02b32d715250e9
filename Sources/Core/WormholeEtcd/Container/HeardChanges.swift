/// What the events of a watch tell about the number of keys in a range, and about their last change.
///
/// Servers with a certain fault lose events. A glance at the range, the number of its keys and the
/// revision of their last change, then differs from what the events explain.
struct HeardChanges: Sendable {
  /// Changes up to this moment were heard, or are older than the watch.
  private var known = EtcdMoment.none
  /// The last glance, and the number of keys that were created since, less those that were deleted.
  private var glance: (count: Int64, at: EtcdMoment)?
  private var difference: Int64 = 0

  init(after moment: EtcdMoment = .none) { known = moment }

  mutating func take(_ events: [EtcdEvent], of history: Int) {
    for event in events {
      let item = event.keyValue
      let moment = EtcdMoment(history: history, revision: item.modified)
      know(moment)
      guard let glance, moment > glance.at else { continue }
      switch event.kind {
      case .put: difference += item.created == item.modified ? 1 : 0
      case .delete: difference -= 1
      }
    }
  }

  /// Notes that its user has read the range.
  mutating func know(_ moment: EtcdMoment) { known = max(known, moment) }

  /// Whether the events explain a glance; it is the base of the next one. An event that is on its
  /// way counts as lost, too.
  mutating func explain(count: Int64, newest: Int64, at moment: EtcdMoment) -> Bool {
    let expected = glance.map { $0.count + difference }
    let isSameHistory = known.history == moment.history
    (glance, difference) = ((count, moment), 0)
    return isSameHistory && newest <= known.revision && expected ?? count == count
  }
}
