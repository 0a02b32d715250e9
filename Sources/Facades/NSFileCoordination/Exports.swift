// On Apple's systems these names are Foundation's, so code that used them imports that.
@_exported public import Foundation

/// Where a method puts its error. Foundation on Linux lacks the name.
///
/// ```swift
/// func save(_ error: NSErrorPointer) {
///   error?.pointee = NSError(domain: "Cinema", code: 1)
/// }
/// var failure: NSError?
/// save(&failure)
/// ```
public typealias NSErrorPointer = UnsafeMutablePointer<NSError?>?
