// A change of a key has such a value: `$0 = .integer(1)`.
@_exported public import enum WormholePropertyLists.PropertyListValue
