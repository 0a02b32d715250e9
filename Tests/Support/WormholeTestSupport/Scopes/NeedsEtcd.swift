package import Testing

extension Trait where Self == ConditionTrait {
  /// The tests need etcd's program. The gate installs it, so only a machine without it skips them.
  package static var needsEtcd: Self { .disabled(if: EtcdNode.isMissing, "etcd is not installed") }
}
