import AppGroup
import FileClaims

extension PresenterConversation {
  /// Notifies the presenters of the item and of its contents of their new places, and those of
  /// directories above that something in them was moved; the client's own presenter knows.
  package static func tellMoved(from old: String, to new: String, by client: PresenterClient) {
    let (from, to) = (place(old), place(new))
    guard from != to else { return }
    let own = client.presenter.flatMap { PresenterRegistry.shared.registered($0) }
    for presenter in PresenterRegistry.shared.all where presenter.path != nil {
      presenter.watcher.follow(from: from, to: to, isOwn: presenter === own)
    }
    for site in PresenterSites.asking([from]) { tell(from, to, at: site) }
  }

  private static func place(_ path: String) -> ItemPath {
    do {
      return try ItemPath.canonical(path, followingLink: false)
    } catch {
      // A directory above that may not be looked at: it is the same place as it is written, at least.
      return ItemPath(path)
    }
  }

  private static func tell(_ from: ItemPath, _ to: ItemPath, at site: PresenterSite) {
    let concerned = RemoteAsking.others(at: site).filter {
      $0.path == from || from.contains($0.path) || $0.path.contains(from)
    }
    guard !concerned.isEmpty else { return }
    do {
      let request = PresenterRequest(
        coordinator: try site.coordinatorID(), subject: .moved(from: from.text, to: to.text),
        answers: Dictionary(concerned.map { ($0.id, .asked) }) { first, _ in first })
      let id = String(UInt64.random(in: .min ... .max), radix: 16)
      try site.add(request, id, until: .now + PresenterConversation.patience)
    } catch {
      // Their own watches find most moves, too.
      Diagnostics.report(error)
    }
  }
}
