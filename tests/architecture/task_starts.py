"""Find what starts a task, a group of tasks or a thread in the product, and the tests that a table names.

Work that its caller awaits at once, such as by `asyncio.gather` and `asyncio.to_thread`, raises its error there like any
other call, so it is not a start.
"""

import ast
from collections.abc import Iterator

from tests.architecture.source import Module, module

_EMBEDDED = "tests/embedded/test_failed_tasks.py::test_failed_task_ends_control_plane_and_is_named"
_EACH_TASK = "tests/integration/test_each_task.py::test_failed_task_is_named_and_starts_again"
_SUPERVISOR = "tests/unit/apiserver/test_supervision.py::test_failed_task_is_logged_counted_and_restarted"
_DEFINITIONS = "tests/integration/test_api_tasks.py::test_clean_up_of_definition_is_repeated_after_failure"
_CONTAINERS = "tests/embedded/test_failed_containers.py::"
_CONTAINER = f"{_CONTAINERS}test_failed_task_of_container_ends_it_with_its_error"
_STREAMS = "tests/embedded/test_failed_streams.py::"
_EXEC = f"{_STREAMS}test_failed_task_of_exec_or_attach_ends_it_with_its_error"
_FORWARDED = f"{_STREAMS}test_failed_task_of_forwarded_port_is_reported_over_spdy"
_LISTENING = "tests/integration/test_listening.py::"
_PREEMPTION = "tests/integration/test_preemption.py::"
_EVICTION = f"{_PREEMPTION}test_unexpected_error_of_eviction_is_logged_and_preemption_is_retried"
_PROCESS = "tests/integration/test_process_tasks.py::test_failed_manager_task_ends_process_and_is_named"
_STORE = "tests/unit/etcd/embedded/test_failed_tasks.py::"
_RUN = "tests/unit/mockube/processes/test_control_plane.py::"
_RESTARTS = f"{_RUN}test_failed_task_of_manager_process_ends_run_with_its_error"
_WATCH = "tests/unit/etcd/remote/test_watch.py::"
_SUPERVISED = "tests/unit/controller_manager/test_supervision.py::"
_HOSTED = "tests/unit/mockube/embedded/test_hosting.py::"

TESTS = {
    "apiserver/app.py::_start": _EACH_TASK,
    "apiserver/customresources/establishing.py::run": _DEFINITIONS,
    "apiserver/customresources/establishing.py::catch_up": _DEFINITIONS,
    "apiserver/http/exchanges.py::_pipe": f"{_STREAMS}test_failed_direction_of_tunnel_ends_it",
    "apiserver/http/server.py::accept": f"{_LISTENING}test_failed_acceptor_is_named_and_starts_again",
    "apiserver/http/server.py::_open": f"{_LISTENING}test_failed_handshake_closes_its_connection_alone",
    "apiserver/http/streams.py::begin": "tests/unit/apiserver/http/test_watch_messages.py"
    "::test_failed_reader_of_messages_is_logged_and_ends_watch",
    "apiserver/long_work.py::run": "tests/unit/apiserver/test_long_work.py::test_error_of_work_is_raised",
    "apiserver/running.py::running": _EACH_TASK,
    "apiserver/running.py::_start_tasks": _EACH_TASK,
    "apiserver/running.py::_follow_certificates": _EACH_TASK,
    "apiserver/supervision.py::running": _SUPERVISOR,
    "apiserver/supervision.py::_start": _SUPERVISOR,
    "controller_manager/cache/informer.py::run": _EMBEDDED,
    "controller_manager/cache/informer.py::_start": _EMBEDDED,
    "controller_manager/cache/informer.py::_follow": _EMBEDDED,
    "controller_manager/control/cluster_identity.py::run_until_changed": _EMBEDDED,
    "controller_manager/control/events/recorder.py::run": _EMBEDDED,
    "controller_manager/control/runner.py::run": _EMBEDDED,
    "controller_manager/control/runner.py::_park": "tests/integration/test_manager_planning.py"
    "::test_failed_wait_for_own_writes_ends_manager_and_is_named",
    "controller_manager/controllers/garbagecollector/collector.py::run": _EMBEDDED,
    "controller_manager/controllers/nodelifecycle/controller.py::run": _EMBEDDED,
    "controller_manager/controllers/resourcequota/controller.py::run": _EMBEDDED,
    "controller_manager/kubelet/nodes.py::run": _EMBEDDED,
    "controller_manager/kubelet/processes/container_checks.py::run": _CONTAINER,
    "controller_manager/kubelet/processes/process_run.py::execute": _CONTAINER,
    "controller_manager/kubelet/processes/process_run.py::_run_process": _CONTAINER,
    "controller_manager/kubelet/processes/runtime.py::forget": f"{_CONTAINERS}"
    "test_failed_end_of_pod_is_logged_and_leaves_no_process",
    "controller_manager/kubelet/processes/runtime.py::_start": f"{_CONTAINERS}"
    "test_failed_update_of_volumes_is_tried_again",
    "controller_manager/kubelet/server/interactive.py::attach": _EXEC,
    "controller_manager/kubelet/server/interactive.py::_start": f"{_CONTAINERS}"
    "test_failed_simulated_container_ends_with_its_error",
    "controller_manager/kubelet/server/port_forward.py::_add": _FORWARDED,
    "controller_manager/kubelet/server/port_forward.py::_channels": f"{_STREAMS}"
    "test_failed_task_of_forwarded_ports_ends_websocket",
    "controller_manager/kubelet/server/process_streams.py::run_exec": _EXEC,
    "controller_manager/kubelet/server/process_streams.py::attach_to": _EXEC,
    "controller_manager/kubelet/server/process_streams.py::_copy_all": _EXEC,
    "controller_manager/kubelet/server/process_streams.py::connect_port": _FORWARDED,
    "controller_manager/kubelet/server/remote_command.py::_run": f"{_STREAMS}"
    "test_failed_task_of_exec_ends_it_over_spdy",
    "controller_manager/kubelet/server/remote_command.py::_with_terminal": _EXEC,
    "controller_manager/leaderelection/elector.py::lead": "tests/integration/test_manager_leader.py"
    "::test_failed_renewal_cancels_work_and_releases_lease",
    "controller_manager/leaderelection/elector.py::run_without_lease": _EMBEDDED,
    "controller_manager/running.py::run": _EMBEDDED,
    "controller_manager/running.py::_run_all": _EMBEDDED,
    "controller_manager/scheduler/preemption_executor.py::preempt": _EVICTION,
    "controller_manager/scheduler/preemption_executor.py::_evict_all": _EVICTION,
    "controller_manager/scheduler/scheduler.py::_schedule": "tests/integration/test_scheduler.py"
    "::test_failed_binding_is_logged_and_retried",
    "controller_manager/serve.py::serve": _PROCESS,
    "controller_manager/supervision.py::start": f"{_SUPERVISED}"
    "test_error_is_logged_once_with_traceback_and_tasks",
    "controller_manager/supervision.py::start_in": _EMBEDDED,
    "controller_manager/supervision.py::run_all": "tests/unit/controller_manager/test_together.py"
    "::test_failed_task_cancels_others",
    "controller_manager/supervision.py::run_with": f"{_SUPERVISED}test_failed_background_task_cancels_work",
    "etcd/embedded/checkpoint.py::__init__": f"{_STORE}test_failed_checkpoint_ends_store",
    "etcd/embedded/disk.py::__init__": f"{_STORE}test_errors_of_thread_reach_callers_or_log",
    "etcd/embedded/disk.py::call": f"{_STORE}test_errors_of_thread_reach_callers_or_log",
    "etcd/embedded/durable.py::_start_sweep": f"{_STORE}test_failed_checkpoint_ends_store",
    "etcd/embedded/group_commit.py::__init__": f"{_STORE}"
    "test_failed_group_commit_ends_store_and_fails_writes",
    "etcd/embedded/store.py::_expire_leases": f"{_STORE}test_failed_expiry_of_leases_ends_store",
    "etcd/embedded/store.py::_start": f"{_STORE}test_rewrite_that_fails_after_its_caller_is_logged",
    "etcd/remote/watch.py::__init__": f"{_WATCH}test_error_of_follower_reaches_reader_and_closes_stream",
    "etcd/remote/watch.py::request_progress": f"{_WATCH}test_error_of_progress_request_reaches_reader",
    "mockube/embedded/background_loop.py::__init__": f"{_HOSTED}test_error_of_task_is_raised_at_end",
    "mockube/embedded/background_loop.py::submit": f"{_HOSTED}test_error_of_submitted_work_is_raised",
    "mockube/embedded/control_plane.py::_working": _EMBEDDED,
    "mockube/embedded/direct.py::_start": "tests/unit/mockube/embedded/test_direct.py"
    "::test_failed_in_process_request_is_logged_and_cut",
    "mockube/importing/importer.py::_run_all": "tests/integration/test_importing.py"
    "::test_unexpected_error_of_one_object_ends_import",
    "mockube/processes/child_processes.py::wait_first": f"{_RUN}"
    "test_failure_of_one_wait_is_raised_and_ends_others",
    "mockube/processes/child_processes.py::running": _RESTARTS,
    "mockube/processes/child_processes.py::_run_once": _RESTARTS,
    "mockube/processes/control_plane.py::importing": f"{_RUN}test_failed_import_is_raised",
    "mockube/processes/preimport.py::_main": "tests/unit/mockube/processes/test_preimport_wait.py"
    "::test_failed_import_ends_program_with_traceback",
}
"""For each place that starts a task or a thread, a test in which that task raises an unexpected error.

The test fails when the reaction to the error is removed: the task starts again, or the process ends with the error, or one
request, connection or object gets it. Before a new place is added here, its test is written and seen to fail.
"""

CALLS = frozenset(
    {
        *("create_task", "ensure_future", "run_coroutine_threadsafe", "TaskGroup"),
        *("Thread", "ThreadPoolExecutor", "ProcessPoolExecutor", "run_in_executor", "DiskThread"),
        *("start_in", "run_all"),
    }
)
"""Functions and classes whose call is a start, under any object."""
METHODS = frozenset({"_spawn"})
"""Of a store."""


def starts(of: Module) -> Iterator[tuple[int, str]]:
    """Yield line and place of each start: the file and the function, as in `etcd/embedded/store.py::_start`."""
    for function, call in _calls(of.tree, ""):
        if _is_start(call.func):
            yield call.lineno, f"{of.path}::{function}"


def has_test(name: str) -> bool:
    """Return whether a test of this name exists: `tests/FILE.py::test_function`."""
    path, _, function = name.partition("::")
    try:
        tree = module(path).tree
    except FileNotFoundError:
        return False
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function
        for node in ast.walk(tree)
    )


def _calls(node: ast.AST, function: str) -> Iterator[tuple[str, ast.Call]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            yield function, child
        is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from _calls(child, child.name if is_function else function)


def _is_start(function: ast.expr) -> bool:
    """`start` is also a method of matches and threads: only as a function, or of a supervisor, does it start a task."""
    if isinstance(function, ast.Name):
        return function.id in CALLS or function.id == "start"
    if not isinstance(function, ast.Attribute):
        return False
    owner = function.value
    owner_name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
    return function.attr in CALLS | METHODS or (function.attr == "start" and owner_name == "supervisor")
