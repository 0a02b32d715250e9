// On Apple's systems these names are Foundation's, so code that used them imports that.
@_exported public import Foundation

/// Where a method puts its error. Foundation on Linux lacks the name.
public typealias NSErrorPointer = UnsafeMutablePointer<NSError?>?
