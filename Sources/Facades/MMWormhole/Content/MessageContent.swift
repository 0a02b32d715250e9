import Foundation
import WormholePropertyLists

/// A message as it is stored and sent: the property list itself if the object is one, otherwise a
/// keyed archive.
enum MessageContent {
  /// - Throws: `PropertyListError` for an object that neither form can hold.
  static func content(of message: any NSCoding) throws -> PropertyListValue {
    do throws(PropertyListError) {
      return try PropertyListValue(propertyList: message)
    } catch {
      guard error.code == .unsupportedType else { throw error }
      return try KeyedArchive.content(of: message)
    }
  }

  /// - Throws: The reason why an archive cannot be read.
  static func message(from content: PropertyListValue) throws -> (any NSCoding)? {
    guard !KeyedArchive.isArchive(content) else { return try KeyedArchive.object(in: content) }
    return content.propertyListObject as? any NSCoding
  }
}
