// Like Apple's module: code that imports only WatchConnectivity uses NSObject, Data and Progress.
@_exported public import Foundation

// On Apple's systems, Foundation declares these names.
@_exported public import enum WormholeUserDefaults.NSKeyValueChange
@_exported public import class WormholeUserDefaults.NSKeyValueObservation
@_exported public import struct WormholeUserDefaults.NSKeyValueObservedChange
@_exported public import struct WormholeUserDefaults.NSKeyValueObservingOptions
