// As the original's module does: code that imports only Communicator uses Data, URL and DispatchQueue.
@_exported public import Foundation
