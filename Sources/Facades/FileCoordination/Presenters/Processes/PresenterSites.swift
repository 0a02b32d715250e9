import AppGroup
import FileClaims
import FoundationEssentials
import Synchronization
import SystemCalls

/// Finds the containers in which the presenters of an item register: the nearest that encloses it
/// and that this user may use, else the user's own for file coordination.
enum PresenterSites {
  private static let group = "file-coordination"
  private static let known = Mutex<[String: PresenterSite]>([:])
  /// A process that coordinates in more containers than this opens some of them again.
  private static let maximumKnown = 64

  /// Where a presenter of an item registers; made where it is missing.
  ///
  /// - Throws: `PresenterError` when the user's own container cannot be used.
  static func registering(_ path: ItemPath) throws -> PresenterSite {
    if let nearest = enclosing(path).first { return nearest }
    do {
      return keep(try SharedContainer(group: group))
    } catch {
      throw PresenterError.cannotRegister(path.text, error)
    }
  }

  /// The sites of all presenters that an access to these items can concern: the presenters of a directory
  /// far above may have found a different container.
  ///
  /// - Complexity: one look for each directory above an item, and one at the user's own container.
  static func asking(_ paths: [ItemPath]) -> [PresenterSite] {
    var sites: [PresenterSite] = []
    for path in paths {
      for site in enclosing(path) where !sites.contains(where: { $0 === site }) {
        sites.append(site)
      }
    }
    if let own = own(), !sites.contains(where: { $0 === own }) { sites.append(own) }
    return sites
  }

  private static func enclosing(_ path: ItemPath) -> [PresenterSite] {
    ([path] + path.ancestors).compactMap { site(at: $0.text) }
  }

  private static func own() -> PresenterSite? {
    do {
      return site(at: try ContainerLocation.path(forGroup: group))
    } catch {
      // Neither XDG_DATA_HOME nor HOME is set: then no process can have registered there.
      return nil
    }
  }

  private static func site(at path: String) -> PresenterSite? {
    let file =
      path.utf8.last == UInt8(ascii: "/") ? path + "container.plist" : path + "/container.plist"
    guard statusIfVisible(file)?.kind == .regular else { return nil }
    if let site = known.withLock({ $0[path] }) { return site }
    for access in [ContainerAccess.owner, .group] {
      do {
        return keep(try SharedContainer(url: URL(filePath: path), access: access))
      } catch {
        // Another user's, or of a different version: not a container for this process.
        continue
      }
    }
    return nil
  }

  private static func keep(_ container: SharedContainer) -> PresenterSite {
    known.withLock { known in
      let path = container.url.path
      if let site = known[path] { return site }
      if known.count >= maximumKnown { known = [:] }
      let site = PresenterSite(container)
      known[path] = site
      return site
    }
  }
}
