import Foundation
import Wormhole
import WormholeEtcd
import WormholeSystem
import WormholeWorkshop

/// A cluster of etcd on free ports for one run, if its program is installed, as durable as by default;
/// it is killed at the end.
final class EtcdServers {
  private let ports: [UInt16]
  private let arguments: [[String]]
  private var members: [RivalServer?]
  private let directory: String

  /// - Returns: nil if the program is not installed.
  init?(_ count: Int, _ directory: String) throws {
    self.directory = directory
    ports = try (0..<count).map { _ in try FileDescriptor.freePort() }
    let peers = try (0..<count).map { _ in "http://127.0.0.1:\(try FileDescriptor.freePort())" }
    let all = peers.enumerated().map { "m\($0)=\($1)" }.joined(separator: ",")
    arguments = ports.enumerated().map { index, port in
      [
        "--name", "m\(index)", "--data-dir", "\(directory)/\(index)",
        "--listen-client-urls", "http://127.0.0.1:\(port)",
        "--advertise-client-urls", "http://127.0.0.1:\(port)",
        "--listen-peer-urls", peers[index], "--initial-advertise-peer-urls", peers[index],
        "--initial-cluster", all, "--initial-cluster-token", all, "--log-level", "error",
      ]
    }
    members = try arguments.map { try RivalServer("etcd", $0) }
    guard members.allSatisfy({ $0 != nil }) else { return nil }
  }

  func kill(_ index: Int) { members[index] = nil }

  func start(_ index: Int) throws { members[index] = try RivalServer("etcd", arguments[index]) }

  /// The place for programs and other processes.
  var location: String {
    "etcd://" + ports.map { "127.0.0.1:\($0)" }.joined(separator: ",") + "/benchmarks"
  }

  func container() throws -> SharedContainer { try Self.container(location, directory) }

  static func container(_ location: String, _ directory: String) throws -> SharedContainer {
    try SharedContainer(etcd: EtcdLocation(location), companion: directory + "/local")
  }

  func connection() throws -> RawEtcd { try RawEtcd(ports[0]) }
}

/// The floor: the same requests on one connection that stays open, prepared beforehand, and answers
/// that are discarded.
final class RawEtcd: Sendable {
  private let socket: FileDescriptor

  init(_ port: UInt16) throws { socket = try FileDescriptor.connected(toPort: port) }

  static func base64(_ text: String) -> String { Data(text.utf8).base64EncodedString() }

  private static func request(_ path: String, _ json: String, isLast: Bool = false) -> [UInt8] {
    Array(
      ("POST /v3/\(path) HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        + (isLast ? "Connection: close\r\n" : "")
        + "Content-Length: \(json.utf8.count)\r\n\r\n\(json)").utf8)
  }

  static func put(_ key: String, _ value: String) -> [UInt8] {
    request("kv/put", #"{"key":"\#(base64(key))","value":"\#(base64(value))"}"#)
  }

  static func get(_ key: String) -> [UInt8] {
    request("kv/range", #"{"key":"\#(base64(key))"}"#)
  }

  /// A transaction with one condition that holds and one put.
  static func transaction(_ key: String, _ value: String) -> [UInt8] {
    let key = base64(key)
    return request(
      "kv/txn",
      #"{"compare":[{"key":"\#(key)","target":"VERSION","result":"GREATER","version":"-1"}],"#
        + #""success":[{"requestPut":{"key":"\#(key)","value":"\#(base64(value))"}}],"#
        + #""failure":[{"requestRange":{"key":"\#(key)"}}]}"#)
  }

  /// Sends a request and waits for the end of its answer.
  func ask(_ request: [UInt8]) throws {
    try socket.writeAll(request)
    var answer = try more()
    // The header may arrive in parts, or alone.
    var header = Self.headerEnd(answer)
    while header == nil {
      answer += try more()
      header = Self.headerEnd(answer)
    }
    let end = header ?? 0
    let length = String(decoding: answer[..<end], as: UTF8.self).split(separator: "\r\n").lazy
      .compactMap { $0.hasPrefix("Content-Length: ") ? Int($0.dropFirst(16)) : nil }.first
    if let length {
      while answer.count < end + length { answer += try more() }
    } else {
      while !answer.suffix(5).elementsEqual("0\r\n\r\n".utf8) { answer += try more() }
    }
  }

  /// Begins to watch a key; the connection has no other use then.
  func watch(_ key: String) throws {
    try socket.writeAll(
      Self.request(
        "watch", #"{"create_request":{"key":"\#(Self.base64(key))"}}"#, isLast: true))
    try line()
  }

  /// Waits for a line of the watch.
  func line() throws {
    var last: UInt8 = 0
    while true {
      // Other line ends belong to chunks.
      for byte in try more() {
        if last == UInt8(ascii: "}"), byte == UInt8(ascii: "\n") { return }
        last = byte
      }
    }
  }

  private static func headerEnd(_ bytes: [UInt8]) -> Int? {
    bytes.indices.dropFirst(3).first { index in
      bytes[index] == 10 && bytes[index - 1] == 13 && bytes[index - 2] == 10
    }.map { $0 + 1 }
  }

  private func more() throws -> [UInt8] {
    let bytes = try Program.read(from: socket.rawValue, maximumBytes: 65_536)
    guard !bytes.isEmpty else { throw Failure(description: "etcd closed the connection") }
    return bytes
  }
}
