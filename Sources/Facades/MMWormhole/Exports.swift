// Like the original: code that imports only MMWormhole uses NSObject, NSCoding and WCSession.
@_exported public import Foundation
@_exported public import WatchConnectivity
