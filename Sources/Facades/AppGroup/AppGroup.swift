// The core under its first name: containers with values and notifications, presences, queues, logs,
// and their inspection.
@_exported public import Wormhole
@_exported public import WormholeInspection
