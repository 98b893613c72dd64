"""The sites whose rule nobody can miss, with the reason: what they decide is decided once more, or only saves time."""

EQUIVALENT_SITES: dict[tuple[str, str], str] = {
    (
        "scheduler/devices/pools.py",
        "_pool: `for … if device.counters` always",
    ): "a device without counters consumes none of them: the rule saves time",
    (
        "scheduler/scores/pod_affinity.py",
        "grouped_pod_affinity_score: `_is_skipped(pod, args) or not (keys or pod.terms)` without or `not (keys or pod.terms)`",
    ): "without any terms all nodes have the same score: the rule saves time",
    (
        "controller_manager/workloads/templates.py",
        "equal_ignoring_hash: `template == other or canonical_template(template) == canonical_templat…` without or `template == other`",
    ): "equal templates have equal canonical forms: it saves their computation",
    (
        "controller_manager/control/executor.py",
        "run_concurrently: `if len(items) == 1` never",
    ): "one call among several has the same result: the rule saves a task",
    (
        "controller_manager/control/executor.py",
        "Executor._execute_action: without `assert_never(action)`",
    ): "no other action exists: it is for the type checker",
    (
        "controller_manager/controllers/attachdetach/controller.py",
        "_changes: `node is not None and {*attached} != {*reported_names}` without and `node is not None`",
    ): "without a node nothing is attached and nothing was reported: it is for the type checker",
    (
        "controller_manager/controllers/bootstrap/controller.py",
        "reconcile_cluster_info: `config_map is None or _CONTENT not in data` without or `config_map is None`",
    ): "an absent ConfigMap has no content: it is for the type checker",
    (
        "mockube/operators/end_state.py",
        "end_state: `for … if label != name` always",
    ): "a name that is replaced by itself remains: the rule saves time",
    (
        "kubelet/kept_contents.py",
        "KeptContents._on_secret_change: `volume and known is not None and (change.new is None or _version(secre…` without and `volume`",
    ): "the reconciliation replaces nothing without a volume: the rule saves it",
}
