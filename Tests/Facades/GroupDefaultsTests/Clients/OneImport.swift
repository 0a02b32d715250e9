// The lines that a port to Linux adds; every other file is as it was.
@_exported import SharedUserDefaults

@_exported import class SharedUserDefaults.NSObject
@_exported import class SharedUserDefaults.UserDefaults
