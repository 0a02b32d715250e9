// As Apple's module does: code that imports only WatchConnectivity uses NSObject, Data and Progress.
@_exported public import Foundation

// On Apple's systems these names are Foundation's, too.
@_exported public import enum SharedUserDefaults.NSKeyValueChange
@_exported public import class SharedUserDefaults.NSKeyValueObservation
@_exported public import struct SharedUserDefaults.NSKeyValueObservedChange
@_exported public import struct SharedUserDefaults.NSKeyValueObservingOptions
