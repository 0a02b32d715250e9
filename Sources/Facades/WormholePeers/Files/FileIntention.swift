import FoundationEssentials
import Wormhole
import WormholePropertyLists
import WormholeSystem

/// The first entry of a file's transfer, in its sender's own queue: enough to begin again after the
/// process that stored it has ended.
struct FileIntention: Sendable {
  /// Identifies the transfer; both the intention and the peer's entry carry it.
  let id: String
  let peer: String
  let source: String
  let size: Int64
  let metadata: PropertyListValue?
  let options: PeerFileOptions

  /// The common prefix of the names of this transfer's attachments; each attempt adds a mark. All
  /// ids have one length, so none is a prefix of another.
  var attachmentPrefix: String { id + "-" }

  init(
    _ source: borrowing SourceFile, to peer: String, metadata: PropertyListValue?,
    options: PeerFileOptions
  ) {
    // Two nonces, so that no id repeats even across machines.
    id = Nonce.nextWithAllDigits() + Nonce.nextWithAllDigits()
    self.peer = peer
    self.source = source.path
    size = source.status.size
    self.metadata = metadata
    self.options = options
  }

  static let idLength = 32

  static func isID(_ text: String) -> Bool {
    text.utf8.count == idLength && text.utf8.allSatisfy(Nonce.isDigit)
  }

  /// Reads an entry's payload; nil if it has another form.
  init?(_ value: PropertyListValue) {
    guard let id = value["transfer"]?.stringValue, Self.isID(id),
      let peer = value["peer"]?.stringValue, let source = value["source"]?.stringValue,
      source.hasPrefix("/"), let size = value["size"]?.int64Value, size >= 0
    else { return nil }
    self.id = id
    self.peer = peer
    self.source = source
    self.size = size
    metadata = value["metadata"]
    options = PeerFileOptions(
      durability: value["isDurable"]?.boolValue == true ? .durable : .standard,
      expiry: value["expiry"]?.doubleValue.flatMap {
        $0.isNaN ? nil : .seconds(min(max($0, 0), 1e12))
      },
      receiptTerm: value["receiptExpires"]?.boolValue == true
        ? .dayAfterProcessing : .untilForgotten)
  }

  var value: PropertyListValue {
    var value: PropertyListValue = [
      "transfer": .string(id), "peer": .string(peer), "source": .string(source),
      "size": .integer(size), "isDurable": .boolean(options.durability == .durable),
    ]
    value["metadata"] = metadata
    value["expiry"] = options.expiry.map { .real($0 / .seconds(1)) }
    if options.receiptTerm == .dayAfterProcessing { value["receiptExpires"] = true }
    return value
  }
}

/// The entry that a peer gets for a file, besides its content.
struct FileNotice: Sendable {
  let id: String
  let attachment: String
  let name: String
  let size: Int64
  let metadata: PropertyListValue?

  init(_ intention: FileIntention, attachment: String, size: Int64) {
    id = intention.id
    self.attachment = attachment
    name = Self.lastComponent(intention.source)
    self.size = size
    metadata = intention.metadata
  }

  /// Reads an entry's payload; nil if it has another form.
  init?(_ value: PropertyListValue) {
    guard let id = value["transfer"]?.stringValue, FileIntention.isID(id),
      let attachment = value[QueueAttachment.key]?.stringValue,
      let size = value["size"]?.int64Value, size >= 0
    else { return nil }
    self.id = id
    self.attachment = attachment
    name = Self.lastComponent(value["name"]?.stringValue ?? "")
    self.size = size
    metadata = value["metadata"]
  }

  var value: PropertyListValue {
    var value: PropertyListValue = [
      "transfer": .string(id), QueueAttachment.key: .string(attachment), "name": .string(name),
      "size": .integer(size),
    ]
    value["metadata"] = metadata
    return value
  }

  // Any sender may write anything here, and the receiver may append it to a path.
  private static func lastComponent(_ text: String) -> String {
    let bytes = text.utf8.split(separator: UInt8(ascii: "/")).last ?? [][...]
    let name = String(decoding: bytes.filter { $0 != 0 }, as: UTF8.self)
    return ["", ".", ".."].contains(name) ? "file" : name
  }
}

/// A file to be sent, open.
///
/// If the path ends in a symbolic link, its target is copied, as other programs do. Only a regular
/// file is accepted, and opening never waits: a FIFO is opened without its other end.
struct SourceFile: ~Copyable {
  let path: String
  let status: FileStatus
  let descriptor: FileDescriptor

  /// - Throws: `WormholeError`: `fileAccess`, or `tooManyOpenFiles`.
  init(_ path: String, to peer: String) throws(WormholeError) {
    let file = try Self.open(path, to: peer)
    let status: FileStatus
    do throws(Errno) {
      status = try file.status()
    } catch {
      throw Self.refused(path, to: peer, "\(error)", error)
    }
    guard status.kind == .regular else {
      let kind = status.kind == .directory ? "directory" : "\(status.kind)"
      throw Self.refused(
        path, to: peer, "it is a \(kind), not a regular file",
        remedy: status.kind == .directory ? "send an archive of it, or its files one by one" : nil)
    }
    self.path = path
    self.status = status
    descriptor = file
  }

  private static func open(_ path: String, to peer: String) throws(WormholeError) -> FileDescriptor
  {
    do throws(Errno) {
      return try FileDescriptor.open(path, [.readOnly, .nonBlocking])
    } catch {
      // open(2): a FIFO or device without its other end, a socket.
      let reason = error == .noSuchDevice ? "it is not a regular file" : "\(error)"
      throw refused(path, to: peer, reason, error)
    }
  }

  static func refused(
    _ path: String, to peer: String, _ reason: String, _ error: Errno? = nil,
    remedy: String? = nil
  ) -> WormholeError {
    // A lack of descriptors says nothing about the file.
    let isShort = error == .tooManyOpenFiles || error == .tooManyOpenFilesInSystem
    return WormholeError(
      isShort ? .tooManyOpenFiles : .fileAccess, "send \(path) to \"\(peer)\"", peer: peer,
      reason: reason, remedy: remedy, errorNumber: error?.rawValue)
  }

  static func path(of url: URL, to peer: String) throws(WormholeError) -> String {
    guard url.isFileURL else {
      throw refused(url.absoluteString, to: peer, "it is not the URL of a file")
    }
    let path = url.path
    guard !path.utf8.contains(0) else {
      throw refused(path, to: peer, "a path has no zero byte in it")
    }
    guard !path.hasPrefix("/") else { return path }
    do throws(Errno) {
      return try linkTarget("/proc/self/cwd") + "/" + path
    } catch {
      throw refused(path, to: peer, "the current directory cannot be found: \(error)")
    }
  }
}
