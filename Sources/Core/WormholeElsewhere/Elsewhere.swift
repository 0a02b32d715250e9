// On systems other than Linux each library of this package is this target, which declares nothing, so that a package for
// several systems can depend on it without a condition. There `canImport(Wormhole)` is false.
