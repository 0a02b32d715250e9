public import FoundationEssentials
import Wormhole
public import WormholePropertyLists

/// What a user does at one peer and may continue at another: watch a film, write a text.
///
/// On Apple's platforms this is `NSUserActivity`, which Foundation on Linux lacks.
///
/// ```swift
/// let phone = try PeerSession("phone", in: container)
/// let activity = PeerActivity(type: "film", title: "Metropolis", content: ["id": 23523])
/// let offer = try phone.offer(activity)
/// print(offer.id)
/// ```
public struct PeerActivity: Sendable, Hashable {
  /// The kind of activity: peers continue the types that they know. By convention a reversed domain
  /// name.
  public var type: String
  /// A title for people.
  public var title: String
  /// The information that another peer needs to continue it.
  public var content: PropertyListValue
  /// How long it is offered; nil for as long as the peer offers it.
  public var expiry: Duration?

  /// Makes an activity.
  public init(
    type: String, title: String, content: PropertyListValue = [:], expiry: Duration? = nil
  ) {
    self.type = type
    self.title = title
    self.content = content
    self.expiry = expiry
  }
}

/// An activity that a peer offers, or that was handed over.
///
/// ```swift
/// let watch = try PeerSession("watch", in: container)
/// for offer in try watch.offers() {
///   print(offer.title)
///   try await watch.handOver(offer, to: "phone")
/// }
/// ```
public struct PeerOffer: Sendable, Hashable {
  /// The peer that offers it, by the name that the peer gave itself.
  public let peer: String
  /// The kind of activity.
  public let type: String
  /// A title for people.
  public let title: String
  /// The information that another peer needs to continue it.
  public let content: PropertyListValue
  /// Identifies it among all offers.
  public let id: String
  let expiry: Expiry

  /// When the offer ends; nil for never.
  public var expires: Date? { expiry.isNever ? nil : expiry.date }

  init(_ activity: PeerActivity, of peer: String) {
    self.peer = peer
    type = activity.type
    title = activity.title
    content = activity.content
    id = UUID().uuidString
    expiry = activity.expiry.map { Expiry(after: $0) } ?? .never
  }

  var propertyList: PropertyListValue {
    var value: PropertyListValue = [
      "peer": .string(peer), "type": .string(type), "title": .string(title), "content": content,
      "id": .string(id),
    ]
    if !expiry.isNever { expiry.write(into: &value) }
    return value
  }

  /// - Returns: nil for a value of another form, because other programs may have written anything.
  init?(_ value: PropertyListValue) {
    guard case .dictionary = value, let peer = value["peer"]?.stringValue,
      let type = value["type"]?.stringValue, let title = value["title"]?.stringValue,
      let content = value["content"], let id = value["id"]?.stringValue
    else { return nil }
    self.peer = peer
    self.type = type
    self.title = title
    self.content = content
    self.id = id
    expiry = Expiry(value) ?? .never
  }

  /// Two offers are equal when their ids are.
  public static func == (one: PeerOffer, other: PeerOffer) -> Bool { one.id == other.id }

  /// Hashes the id.
  public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}
