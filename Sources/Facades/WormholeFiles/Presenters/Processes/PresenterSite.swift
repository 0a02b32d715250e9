import Dispatch
import FoundationEssentials
import Synchronization
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeToolkit

/// The meeting place of several processes' presenters and coordinators: a container.
///
/// A presenter is registered in the presence `own/presence/file-presenters/` with its identifier,
/// its path, the requests that it answers, and its process's mailbox address. It is asked by a call
/// (`CallEndpoint`). Its process answers the call but keeps it until the coordinator releases it,
/// because the access is over, or dies: then the presenter gets its item back. It is notified of a
/// move, even if the mover has ended.
///
/// A look for presenters makes no files.
final class PresenterSite: Sendable {
  /// A presenter of any process.
  struct Member: Sendable {
    let site: PresenterSite
    let id: String
    let path: ItemPath
    let answered: AnsweredSteps
    let mailbox: String
    let presence: PresenceMember

    /// - Returns: nil for a registration by any other program.
    init?(_ presence: PresenceMember, at site: PresenterSite) {
      guard let content = presence.content, let id = content["presenter"]?.stringValue,
        let path = ItemPath(content["path"]), let mailbox = content["mailbox"]?.stringValue
      else { return nil }
      self.site = site
      self.id = id
      self.path = path
      self.mailbox = mailbox
      self.presence = presence
      answered = AnsweredSteps(content["answers"])
    }

    var description: PresenterDescription {
      PresenterDescription(
        processID: presence.processID, program: presence.program, state: presence.state,
        path: path.text)
    }
  }

  /// What a registration says, which never changes.
  private struct Content {
    let process: ProcessIdentity
    let path: ItemPath
    let answered: AnsweredSteps
  }

  let container: SharedContainer
  private let presenters: Presence
  /// The registrations that were there at the last look, by their ids.
  private let known = Mutex<[String: Content]>([:])
  private let calls: CallEndpoint
  /// Once is enough for a process, which may have a presenter for each file.
  private let hasTidied = Atomic(false)

  init(_ container: SharedContainer) {
    self.container = container
    presenters = container.own.presence("file-presenters")
    let queue = Blocking.queue()
    calls = CallEndpoint(in: container) { notice in
      queue.async { Self.take(notice) }
    } handler: { call in
      queue.async { Self.answer(call, on: queue) }
    }
  }

  /// All presenters that are registered here, including this process's.
  func members() throws -> [Member] { try presenters.members().compactMap { Member($0, at: self) } }

  /// Other processes' presenters that an access concerns; none if that cannot be read.
  ///
  /// - Parameter isConcerned: gets the presented path and the steps that the presenter answers.
  /// - Complexity: opens and lists one directory; as `Presence.members` for the presenters
  ///   concerned, and for those that were not there at the last look.
  func others(_ isConcerned: (ItemPath, AnsweredSteps) -> Bool) -> [Member] {
    func isMeant(_ content: Content) -> Bool {
      content.process != .current && isConcerned(content.path, content.answered)
    }
    let old = known.withLock { $0 }
    var present: [String: Content] = [:]
    // An access matters more than the presenters of a damaged or full container.
    return Diagnostics.reporting(otherwise: []) {
      let looked = try presenters.members { id in
        guard let content = old[id] else { return false }
        present[id] = content
        return !isMeant(content)
      }
      let members = looked.compactMap { Member($0, at: self) }.filter { member in
        let content = Content(
          process: member.presence.identity, path: member.path, answered: member.answered)
        present[member.presence.id] = content
        return isMeant(content)
      }
      known.withLock { $0 = present }
      return members
    }
  }

  func enter(
    _ id: String, at path: ItemPath, answering answered: AnsweredSteps
  ) throws -> PresenceRegistration {
    try presenters.enter(
      content: [
        "presenter": .string(id), "path": .string(path.text), "answers": answered.propertyList,
        "mailbox": .string(calls.open()),
      ], tidies: !hasTidied.exchange(true, ordering: .relaxed))
  }

  // MARK: Asking

  /// Asks a presenter.
  ///
  /// - Parameters:
  ///   - isForCallback: whether a presenter's callback waits for the answer.
  ///   - end: called once with the answer or another end of the call, on any thread.
  /// - Returns: a closure to call when the access is over: the presenter gets its item back, or no
  ///   longer needs to answer. Nil if its process has ended, or the call has otherwise ended.
  func ask(
    _ member: Member, about demands: [PresenterDemand], isForCallback: Bool,
    end: @escaping @Sendable (CallEnd) -> Void
  ) -> (@Sendable () -> Void)? {
    let message: PropertyListValue = [
      "presenter": .string(member.id), "demands": .array(demands.map(\.propertyList)),
      "callback": .boolean(isForCallback),
    ]
    do {
      let id = try calls.begin(message, until: nil, end)
      do {
        switch try calls.post(id, to: member.mailbox, isWatched: true) {
        case .posted:
          // After an error the presenter assumes, until this process ends, that the access
          // continues.
          return { Diagnostics.reporting { try self.calls.release(id, at: member.mailbox) } }
        case .gone: calls.end(id, as: .died)
        case .full: calls.end(id, as: .timedOut)
        }
      } catch {
        calls.end(id, as: .failed(error))
      }
    } catch {
      Diagnostics.report(error)
      end(.failed(error))
    }
    return nil
  }

  func reportMove(_ member: Member, from old: ItemPath, to new: ItemPath) {
    notify(member, of: ["movedFrom": old.text, "movedTo": new.text])
  }

  func report(_ event: KeptCopies.Event, _ copy: String, of item: ItemPath, to member: Member) {
    notify(member, of: ["version": event.rawValue, "copy": copy, "of": item.text])
  }

  private func notify(_ member: Member, of news: [String: String]) {
    let message = news.merging(["presenter": member.id]) { $1 }.mapValues(PropertyListValue.string)
    // Its own watch finds most moves, too, and a look finds the copy.
    Diagnostics.reporting { try calls.notify(.dictionary(message), at: member.mailbox) }
  }

  // MARK: Being asked

  private static let maximumDemands = 1_000

  private static func answer(_ call: IncomingCall, on queue: BlockingQueue) {
    // A process that was stopped meanwhile must not do anything outdated.
    call.catchUp()
    guard !call.isOver, let id = call.value["presenter"]?.stringValue,
      let demands = call.value["demands"]?.arrayValue, demands.count <= maximumDemands
    else { return }
    guard let presenter = RegisteredPresenter.registered(id) else {
      return answer(call, .reply([:]))
    }
    let describing = presenter.presenter as? any OriginalPresenter
    let steps = presenter.steps(for: demands.compactMap { PresenterDemand($0) })
    // It keeps the call until its end, and the call keeps it.
    let isForCallback = call.value["callback"]?.boolValue ?? false
    let exchange = PresenterExchange(presenter, steps, isForCallback: isForCallback) { failure in
      queue.async {
        guard let failure else { return answer(call, .reply([:])) }
        let details = describing?.refusal(for: failure) ?? PresenterRefusal(failure)
        answer(
          call, .failure(code: refusal, reason: "\(failure)", details: details.propertyList))
      }
    }
    exchange.start()
    // After the notices that came before it, so that a presenter hears of a move first.
    call.onEnd { queue.async { exchange.finish() } }
  }

  private static func answer(_ call: IncomingCall, _ answer: CallAnswer) {
    // The access that waits for the answer continues without it after a time.
    Diagnostics.reporting { _ = try call.answer(answer, isLast: false) }
  }

  /// The code of a presenter's own error.
  static let refusal = "refused"

  private static func take(_ notice: PropertyListValue) {
    // Other programs may have written anything else.
    guard let id = notice["presenter"]?.stringValue,
      let presenter = RegisteredPresenter.registered(id)
    else { return }
    if let old = ItemPath(notice["movedFrom"]), let new = ItemPath(notice["movedTo"]) {
      presenter.watcher.follow(from: old, to: new, isOwn: false)
    } else if let event = notice["version"]?.stringValue.flatMap(KeptCopies.Event.init(rawValue:)),
      let copy = ItemPath(notice["copy"]), let item = ItemPath(notice["of"])
    {
      presenter.hear(event, copy, of: item)
    }
  }
}

/// Finds the containers in which an item's presenters register: the nearest enclosing one that this
/// user may use, otherwise the user's own for file coordination.
extension PresenterSite {
  private static let sites = Mutex<[String: PresenterSite]>([:])
  /// A process that coordinates in more containers than this opens some of them again.
  private static let maximumKnown = 64

  /// The registration site for a presenter of an item; made if it is missing.
  ///
  /// - Throws: `PresenterError` if the user's own container cannot be used.
  static func registering(_ path: ItemPath) throws -> PresenterSite {
    let enclosing = DirectoriesAbove.containers(path, levels: 0...)
    if let nearest = enclosing.lazy.compactMap({ opened(at: $0.text) }).first { return nearest }
    do {
      return keep(try SharedContainer(group: DirectoriesAbove.ownGroup))
    } catch {
      throw PresenterError(
        description: "cannot register a presenter (\(path.text)): so that other programs can ask "
          + "it, it is entered in a container of this user's, and: \(error); XDG_DATA_HOME names "
          + "another place for such containers", underlying: error)
    }
  }

  /// The sites of all presenters that an access to these items can concern: the presenters of a
  /// directory far above may have found a different container.
  ///
  /// - Complexity: a look at the item and at its directory, and one system call; without
  ///   `DirectoriesAbove.watched` one for each directory above, and for the user's own container.
  static func asking(_ paths: [ItemPath]) -> [PresenterSite] {
    var sites: [PresenterSite] = []
    for path in paths {
      let above = DirectoriesAbove.watched(path)
      let found =
        above.map { DirectoriesAbove.containers(path, levels: ..<2) + $0.containers }
        ?? DirectoriesAbove.containers(path, levels: 0...) + DirectoriesAbove.existingOwnContainer
      for site in opened(found) where !sites.contains(where: { $0 === site }) {
        sites.append(site)
      }
    }
    return sites
  }

  /// The sites in those containers that this user may use.
  static func opened(_ containers: [ItemPath]) -> [PresenterSite] {
    containers.compactMap { opened(at: $0.text) }
  }

  private static func opened(at path: String) -> PresenterSite? {
    if let site = sites.withLock({ $0[path] }) { return site }
    do {
      return keep(try SharedContainer(path: path, access: nil))
    } catch {
      // Another user's, or of a different version: this process cannot use it.
      return nil
    }
  }

  private static func keep(_ container: SharedContainer) -> PresenterSite {
    let site = PresenterSite(container)
    let path = container.url.path
    let (kept, released) = sites.withLock { sites -> (PresenterSite, [String: PresenterSite]) in
      if let other = sites[path] { return (other, [:]) }
      let released = sites.count < maximumKnown ? [:] : exchange(&sites, with: [:])
      sites[path] = site
      return (site, released)
    }
    // Outside the lock: the last reference to a site ends its calls.
    return withExtendedLifetime(released) { kept }
  }
}

extension ItemPath {
  /// - Returns: nil for anything but an absolute path.
  init?(_ value: PropertyListValue?) {
    guard let text = value?.stringValue, text.utf8.first == UInt8(ascii: "/") else { return nil }
    self.init(text)
  }
}

extension PresenterDemand {
  fileprivate init?(_ value: PropertyListValue) {
    guard let path = ItemPath(value["path"]),
      let kind = value["for"]?.stringValue.flatMap({ AccessKind(rawValue: $0) })
    else { return nil }
    self.init(path: path, kind: kind, coversContents: value["contents"]?.boolValue ?? false)
  }

  fileprivate var propertyList: PropertyListValue {
    // A lock is announced as what it means for presenters, which all versions of this package read.
    let announced: AccessKind =
      switch kind {
      case .locking: .content
      case .sharing: .reading
      default: kind
      }
    var fields: [String: PropertyListValue] = [
      "path": .string(path.text), "for": .string(announced.rawValue),
    ]
    if coversContents, !kind.coversContents { fields["contents"] = true }
    return .dictionary(fields)
  }
}
