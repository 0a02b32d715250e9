// Like the original's module: code that imports only Communicator uses Data, URL and DispatchQueue.
@_exported public import Foundation
