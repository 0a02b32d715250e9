// As Apple's module does: code that imports only WatchConnectivity uses NSObject, Data and Progress.
@_exported public import Foundation
