import FoundationEssentials

/// A 64-bit number, which is a string in the JSON of protocol buffers; zero is left out there.
struct WireInteger: Decodable {
  let value: Int64

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let text = Int64(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a number")
    }
    value = text
  }
}

/// A revision, or a number of changes. Additions to it do not overflow.
struct WireRevision: Decodable {
  private static let maximum: Int64 = 1 << 62
  let value: Int64

  init(from decoder: any Decoder) throws {
    value = try WireInteger(from: decoder).value
    guard (0...Self.maximum).contains(value) else {
      throw DecodingError.dataCorrupted(
        .init(codingPath: decoder.codingPath, debugDescription: "no revision"))
    }
  }
}

/// The JSON of the answers of etcd's gateway: bytes are base64, names have underscores.
enum EtcdWire {
  private static let decoder = JSONDecoder()
  /// Shorter texts are decoded without a check of their shape.
  private static let shortBytes = 64 << 10
  /// etcd's own messages have more bytes for each value in an object or a list.
  private static let bytesOfValue = 8
  private static let maximumValues = 1 << 19

  /// - Returns: nil if the bytes are something else.
  static func decode<Message: Decodable>(_ bytes: [UInt8], as type: Message.Type) -> Message? {
    guard isPlausible(bytes) else { return nil }
    // The callers name the member that sent it; the kind of damage does not matter.
    return try? decoder.decode(type, from: Data(bytes))
  }

  /// Whether the decoder, with about 60 bytes for each value, has enough memory for a message.
  static func isPlausible(_ bytes: [UInt8]) -> Bool {
    guard bytes.count > shortBytes else { return true }
    // By pointer: without optimization, an iterator was the tests' most expensive function.
    let values = bytes.withUnsafeBufferPointer { bytes in
      guard let base = bytes.baseAddress else { return 0 }
      var values = 0
      for index in 0..<bytes.count {
        let byte = base[index]
        if byte == UInt8(ascii: ",") || byte == UInt8(ascii: "[") || byte == UInt8(ascii: "{") {
          values += 1
        }
      }
      return values
    }
    return values <= min(bytes.count / bytesOfValue, maximumValues)
  }

  /// Returns a member's message for people: its first 200 characters on one line.
  static func shown(_ text: String) -> String {
    let words = text.unicodeScalars.prefix(1_000).split { scalar in
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator, .spaceSeparator, .surrogate,
        .privateUse, .unassigned:
        true
      default: false
      }
    }
    return String(
      words.map { String(String.UnicodeScalarView($0)) }.joined(separator: " ").prefix(200))
  }

  static func shown(_ content: [UInt8]) -> String {
    shown(String(decoding: content.prefix(1_000), as: UTF8.self))
  }
}

struct WireHeader: Decodable {
  // Spelled out: a strategy of the decoder for names takes as long as all the rest.
  enum CodingKeys: String, CodingKey {
    case clusterId = "cluster_id"
    case memberId = "member_id"
    case revision
  }

  /// Only the header of a whole answer has it.
  let clusterId: String?
  let memberId: String?
  let revision: WireRevision?

  /// Whether it names the answering member and its cluster.
  var isIdentity: Bool {
    [clusterId, memberId].allSatisfy { $0.flatMap { UInt64($0) } ?? 0 > 0 }
  }
}

struct WireError: Decodable {
  enum CodingKeys: String, CodingKey {
    case message, code
    case grpcCode = "grpc_code"
  }

  let message: String?
  let code: Int?
  /// The code within a stream.
  let grpcCode: Int?
}

struct WireKeyValue: Decodable {
  enum CodingKeys: String, CodingKey {
    case key, value, version, lease
    case createRevision = "create_revision"
    case modRevision = "mod_revision"
  }

  let key: Data?
  let value: Data?
  let createRevision: WireRevision?
  let modRevision: WireRevision?
  let version: WireRevision?
  let lease: WireInteger?

  var keyValue: KeyValue {
    KeyValue(
      key: Array(key ?? Data()), value: Array(value ?? Data()),
      created: createRevision?.value ?? 0, modified: modRevision?.value ?? 0,
      version: version?.value ?? 0, lease: lease?.value ?? 0)
  }
}

/// An answer, of which each request gets some members. Bytes are base64, 64-bit numbers are text.
///
/// An answer without a header is ignored, because its sender is not etcd. The closure of
/// `EtcdCluster.call` checks everything else that a request expects.
struct WireAnswer: Decodable {
  enum CodingKeys: String, CodingKey {
    case header, kvs, more, count, succeeded, grantedTTL, keys
    case token, version, leader, dbSize, dbSizeInUse, members, alarms, leases
    case lease = "ID"
    case timeToLive = "TTL"
  }

  let header: WireHeader?
  // Of a read.
  let kvs: [WireKeyValue]?
  let more: Bool?
  let count: WireInteger?
  // Of a transaction.
  let succeeded: Bool?
  /// Only `WireTransaction` decodes them.
  var responses: [WireResponse]?
  // About a lease.
  let lease: WireInteger?
  let timeToLive: WireInteger?
  let grantedTTL: WireInteger?
  /// The keys on it.
  let keys: [Data]?
  // For operators.
  let token: String?
  let version: String?
  let leader: String?
  let dbSize: WireInteger?
  let dbSizeInUse: WireInteger?
  let members: [WireMember]?
  let alarms: [WireAlarm]?
  let leases: [WireLease]?

  var read: WireResult { WireResult(kvs: kvs, more: more, count: nil) }

  /// Returns the result of a transaction; nil if an operation lacks a result of the right kind.
  func outcome(
    of transaction: EtcdTransaction, in history: Int
  ) -> EtcdTransaction.Outcome? {
    let succeeded = succeeded ?? false
    let asked =
      succeeded
      ? transaction.operations : transaction.otherwise.map { EtcdTransaction.Operation.read($0) }
    guard let revision = header?.revision?.value, responses?.count ?? 0 == asked.count,
      succeeded || !transaction.conditions.isEmpty
    else { return nil }
    let results = zip(responses ?? [], asked).compactMap { $0.result(of: $1, at: revision) }
    guard results.count == asked.count else { return nil }
    return .init(succeeded: succeeded, revision: revision, history: history, results: results)
  }
}

struct WireTransaction: Decodable {
  enum CodingKeys: CodingKey {
    case responses
  }

  let answer: WireAnswer

  init(from decoder: any Decoder) throws {
    var answer = try WireAnswer(from: decoder)
    answer.responses = try decoder.container(keyedBy: CodingKeys.self)
      .decodeIfPresent([WireResponse].self, forKey: .responses)
    self.answer = answer
  }
}

/// The result of an operation; small, because a foreign program can send many.
struct WireResult: Decodable {
  let kvs: [WireKeyValue]?
  let more: Bool?
  let count: WireInteger?

  /// Returns the keys of a range, as of a revision; nil if etcd cannot have sent them: they must be
  /// in the order of the keys, with existing revisions.
  func items(of range: KeyRange, limit: Int = .max, upTo revision: Int64) -> [KeyValue]? {
    let items = (kvs ?? []).map(\.keyValue)
    guard items.count <= limit, !(more ?? false) || !items.isEmpty else { return nil }
    var last: [UInt8]?
    for item in items {
      guard range.contains(item.key), last.map({ $0.lexicographicallyPrecedes(item.key) }) ?? true,
        item.version > 0, item.created > 0, item.created <= item.modified,
        item.modified <= revision
      else { return nil }
      last = item.key
    }
    return items
  }

  /// Returns how many keys a range has, and when they were changed last.
  func glance(at range: KeyRange, upTo revision: Int64) -> EtcdTransaction.Result? {
    let count = count?.value ?? 0
    guard let items = items(of: range, limit: 1, upTo: revision), count >= 0,
      (count > 0) == !items.isEmpty
    else { return nil }
    return .glance(count: count, newest: items.first?.modified ?? 0)
  }
}

/// The result of an operation of a transaction, under the name of its kind.
struct WireResponse: Decodable {
  enum CodingKeys: String, CodingKey {
    case put = "response_put"
    case range = "response_range"
    case deletion = "response_delete_range"
  }

  let put: WireResult?
  let range: WireResult?
  let deletion: WireResult?

  /// Returns the result of an operation; nil if this is the result of another one.
  func result(
    of operation: EtcdTransaction.Operation, at revision: Int64
  ) -> EtcdTransaction.Result? {
    switch (operation, put, range, deletion) {
    case (.put, .some, nil, nil): .put
    case (.read(let range, _, let limit), nil, let found?, nil):
      found.items(of: range, limit: limit ?? .max, upTo: revision).map {
        .read($0, isIncomplete: limit != nil && found.more ?? false)
      }
    case (.glance(let range), nil, let found?, nil): found.glance(at: range, upTo: revision)
    case (.count, nil, let found?, nil) where (found.kvs ?? []).isEmpty:
      found.count?.value ?? 0 < 0 ? nil : .count(found.count?.value ?? 0)
    case (.delete, nil, nil, .some): .deleted
    default: nil
    }
  }
}

/// The answer to a keep-alive: a stream of one message.
struct WireStream: Decodable {
  let result: WireAnswer?
}

/// A member as the cluster knows it, with the addresses that it announces to clients.
struct WireMember: Decodable {
  enum CodingKeys: String, CodingKey {
    case number = "ID"
    case name
    case addresses = "clientURLs"
  }

  let number: String?
  let name: String?
  let addresses: [String]?
}

/// A lease in a list; only their number counts.
struct WireLease: Decodable {}

struct WireAlarm: Decodable {
  let alarm: String?
}
