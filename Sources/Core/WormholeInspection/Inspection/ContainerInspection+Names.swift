import Wormhole
import WormholePropertyLists
import WormholeSystem

/// The inspection of the directory of one value or notification.
extension ContainerInspection {
  mutating func lookAtName(_ identifier: String, of kind: NameKind, at path: String) {
    guard status(path)?.kind == .directory else {
      return addForeign(path, isInTheWay: true)
    }
    checkOwnerAndMode(path)
    let owner = Owner(kind: kind, identifier: identifier, path: path)
    switch kind.primitive {
    case .presence, .consumer: lookAtPresence(owner)
    case .queue: lookAtQueue(owner)
    case .log: lookAtLog(owner)
    case .value, .notification:
      lookAtContent(Value(container: container, identifier: identifier, kind: kind), kind)
      lookAtParts(of: owner)
    }
  }

  private mutating func lookAtContent(_ value: Value, _ kind: NameKind) {
    let path = value.directory.relativePath + "/" + value.fileName
    var content = ContainerReport.NamedContent(identifier: value.identifier, path: value.path)
    if kind == .notification { content.state = 0 }
    defer {
      report.change(kind) { names in
        if kind == .notification {
          names.notifications.append(content)
        } else {
          names.values.append(content)
        }
      }
    }
    guard let status = status(path) else { return }
    checkOwnerAndMode(path)
    content.bytes = status.size
    content.modified = status.modified
    // Anything but a file of acceptable size is refused without being read.
    let isRead = status.kind == .regular && status.size <= Int64(Value.maximumFileBytes)
    guard mayRead(isRead ? status.size : 0) else {
      content.condition = .notRead
      return
    }
    do {
      let snapshot = try value.snapshot()
      if snapshot.isExpired {
        content.bytes = nil
        content.modified = nil
        return
      }
      let read = try snapshot.propertyList()
      content.expiration = snapshot.expiration
      content.publisher = snapshot.publisher
      content.kept = snapshot.standsInFrom
      content.condition = .readable
      if kind == .ownValue, let read, let reason = problem(value.identifier, read) {
        content.condition = .unreadable(
          AppGroupError(.damaged, "read the value", path: value.path, reason: reason))
      }
      if kind == .notification { content.state = read?.uint64Value }
    } catch let error as AppGroupError {
      content.condition = .unreadable(error)
      // A value without a readable kept version is reported unchanged.
      content.kept = try? value.keptInstead()
    } catch {
      content.condition = .unreadable(
        AppGroupError(.inputOutput, "read the value", path: value.path, reason: "\(error)"))
    }
  }
}
