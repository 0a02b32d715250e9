// The core in one import: containers with values and notifications, presences, queues, logs,
// inspection.
// The targets are apart so that the compiler keeps each from reaching into those above it.
@_exported public import Attachments
@_exported public import Calls
@_exported public import Containers
@_exported public import Copying
@_exported public import Digests
@_exported public import Entries
@_exported public import Inspection
@_exported public import Logs
@_exported public import Monitoring
@_exported public import Notifications
@_exported public import Presences
@_exported public import Publications
@_exported public import QueueFiles
@_exported public import Queues
@_exported public import Values
