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
    for site in PresenterSites.asking([from]) {
      for member in site.others()
      where member.path == from || from.contains(member.path) || member.path.contains(from) {
        site.tellMoved(member, from: from, to: to)
      }
    }
  }

  private static func place(_ path: String) -> ItemPath {
    do {
      return try ItemPath.canonical(path, followingLink: false)
    } catch {
      // A directory above that may not be looked at: it is the same place as it is written, at least.
      return ItemPath(path)
    }
  }
}
