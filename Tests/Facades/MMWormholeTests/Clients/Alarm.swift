import Foundation

/// An object as apps pass it: no property list, but archived.
public class Alarm: NSObject, NSCoding {
  public let title: String
  public let minutes: Int
  public let fireDate: Date

  public init(title: String, minutes: Int, fireDate: Date = Date()) {
    self.title = title
    self.minutes = minutes
    self.fireDate = fireDate
    super.init()
  }

  public required init?(coder aDecoder: NSCoder) {
    guard let title = aDecoder.decodeObject(forKey: "title") as? String,
      let fireDate = aDecoder.decodeObject(forKey: "fireDate") as? Date
    else { return nil }
    self.title = title
    self.minutes = aDecoder.decodeInteger(forKey: "minutes")
    self.fireDate = fireDate
  }

  public func encode(with aCoder: NSCoder) {
    aCoder.encode(title, forKey: "title")
    aCoder.encode(minutes, forKey: "minutes")
    aCoder.encode(fireDate, forKey: "fireDate")
  }
}
