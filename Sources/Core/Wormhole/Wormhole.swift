// The declarations of other modules that a client of containers needs.
@_exported public import WormholePropertyLists

@_exported public import enum WormholeSystem.ChangeDetection
