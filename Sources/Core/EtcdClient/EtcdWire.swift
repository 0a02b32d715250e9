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

/// The JSON of the answers of etcd's gateway: bytes are base64, names have underscores.
enum EtcdWire {
  private static let decoder = JSONDecoder()

  /// - Returns: nil if the bytes are something else.
  static func decode<Message: Decodable>(_ bytes: [UInt8], as type: Message.Type) -> Message? {
    do {
      return try decoder.decode(type, from: Data(bytes))
    } catch {
      // The callers name the member that said it; how it is broken helps nobody.
      return nil
    }
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
  let revision: WireInteger?
}

/// An answer whose header names the cluster.
protocol WireAnswer: Decodable {
  var header: WireHeader? { get }
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
  let createRevision: WireInteger?
  let modRevision: WireInteger?
  let version: WireInteger?
  let lease: WireInteger?

  var keyValue: KeyValue {
    KeyValue(
      key: Array(key ?? Data()), value: Array(value ?? Data()),
      created: createRevision?.value ?? 0, modified: modRevision?.value ?? 0,
      version: version?.value ?? 0, lease: lease?.value ?? 0)
  }
}

struct WireRangeAnswer: WireAnswer {
  let header: WireHeader?
  let kvs: [WireKeyValue]?
  let more: Bool?
  let count: WireInteger?

  var items: [KeyValue] { (kvs ?? []).map(\.keyValue) }
}

struct WireTransactionAnswer: WireAnswer {
  struct Deleted: Decodable {
    let deleted: WireInteger?
  }

  struct Response: Decodable {
    enum CodingKeys: String, CodingKey {
      case responseRange = "response_range"
      case responseDeleteRange = "response_delete_range"
    }

    let responseRange: WireRangeAnswer?
    let responseDeleteRange: Deleted?

    var result: EtcdTransaction.Result {
      if let responseRange { return .read(responseRange.items) }
      if let responseDeleteRange { return .deleted(responseDeleteRange.deleted?.value ?? 0) }
      return .put
    }
  }

  let header: WireHeader?
  let succeeded: Bool?
  let responses: [Response]?
}

/// The answers about leases.
struct WireLeaseAnswer: WireAnswer {
  enum CodingKeys: String, CodingKey {
    case header, grantedTTL, keys
    case timeToLive = "TTL"
  }

  let header: WireHeader?
  let timeToLive: WireInteger?
  let grantedTTL: WireInteger?
  let keys: [Data]?
}

/// A message of a stream: its `result`, or the error that ends it.
struct WireStreamed<Result: Decodable>: Decodable {
  let result: Result?
  let error: WireError?
}

struct WireKeepAliveAnswer: WireAnswer {
  let result: WireLeaseAnswer?
  let error: WireError?

  var header: WireHeader? { result?.header }
}

/// An answer of which only the header counts.
struct WirePlainAnswer: WireAnswer {
  let header: WireHeader?
  let token: String?
}
