// As Apple's module does: code that imports only WatchConnectivity uses NSObject, Data and Progress.
@_exported public import Foundation
// On Apple's systems these names are Foundation's, too.
