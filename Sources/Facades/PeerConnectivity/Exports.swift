// Names, errors and launching are a target of their own; a program imports PeerConnectivity only.
@_exported public import PeerLaunching
