// A change of a key is one of such a value: `$0 = .integer(1)`.
@_exported public import enum WormholePropertyLists.PropertyListValue
