// The line that a port to Linux adds; every other file is as it was.
@_exported import SharedUserDefaults
