"""The tests and the supervisors of all that `task_starts.py` finds."""

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

_BY_TEST = {
    _EACH_TASK: (
        "apiserver/app.py::_start start 'watch-cache'",
        "apiserver/app.py::_start start 'watch-cache-lag'",
        "apiserver/app.py::_start start 'api-service-availability'",
        "apiserver/app.py::_start start 'flow-schema-status'",
        "apiserver/app.py::_start start 'authentication-config'",
        "apiserver/app.py::_start start 'authorization-config'",
        "apiserver/app.py::_start start 'api-service-registration'",
        "apiserver/app.py::_start start 'crd-establishing'",
        "apiserver/running.py::running supervisor.start 'kubernetes-endpoints'",
        "apiserver/running.py::running supervisor.start 'bootstrap-roles'",
        "apiserver/running.py::_start_tasks start 'compaction'",
        "apiserver/running.py::_start_tasks start 'identity-lease'",
        "apiserver/running.py::_start_tasks start 'system-objects'",
        "apiserver/running.py::_start_tasks start 'watch-cache-check'",
        "apiserver/running.py::_follow_certificates start 'authentication-trust'",
        "apiserver/running.py::_follow_certificates start 'serving-certificates'",
    ),
    "tests/integration/test_each_task.py::test_failed_task_that_cannot_start_again_ends_server": (
        "apiserver/app.py::_start start 'store'",
    ),
    _DEFINITIONS: (
        "apiserver/customresources/controller.py::run TaskGroup",
        "apiserver/customresources/controller.py::catch_up create_task 'clean up *'",
    ),
    f"{_STREAMS}test_failed_direction_of_tunnel_ends_it": (
        "apiserver/http/exchanges.py::_pipe create_task 'from the client'",
        "apiserver/http/exchanges.py::_pipe create_task 'from the backend'",
    ),
    f"{_LISTENING}test_failed_acceptor_is_named_and_starts_again": (
        "apiserver/http/server.py::accept TaskGroup",
        "apiserver/http/server.py::accept create_task 'accept connections'",
    ),
    f"{_LISTENING}test_failed_handshake_closes_its_connection_alone": (
        "apiserver/http/server.py::_open create_task 'a TLS handshake'",
    ),
    "tests/unit/apiserver/http/test_watch_messages.py::test_failed_reader_of_messages_is_logged_and_ends_watch": (
        "apiserver/http/streams.py::begin create_task 'read the client of a watch'",
    ),
    "tests/integration/test_api_watches.py::test_unexpected_error_of_sending_is_logged_and_ends_that_watch_alone": (
        "apiserver/request/watch.py::serve create_task 'send the events of a watch'",
    ),
    "tests/unit/controller_manager/kubelet/test_pod_certificates.py::test_failed_generation_of_key_is_raised": (
        "controller_manager/kubelet/pod_certificates.py::_request run_in_executor",
    ),
    "tests/unit/apiserver/test_event_loop.py::test_error_of_work_is_raised": (
        "apiserver/event_loop.py::run run_in_executor",
    ),
    _SUPERVISOR: (
        "apiserver/supervision.py::running TaskGroup",
        "apiserver/supervision.py::_start create_task",
    ),
    _EMBEDDED: (
        "controller_manager/cache/informer.py::run TaskGroup",
        "controller_manager/cache/informer.py::_start start 'informer of *'",
        "controller_manager/cache/informer.py::_follow TaskGroup",
        "controller_manager/cache/informer.py::_follow start_in 'reflector of *'",
        "controller_manager/cache/informer.py::_follow start_in 'resync of *'",
        "controller_manager/control/cluster_identity.py::run_until_changed start 'work in one cluster'",
        "controller_manager/control/cluster_identity.py::run_until_changed start 'identity of the cluster'",
        "controller_manager/control/events/recorder.py::run TaskGroup",
        "controller_manager/control/events/recorder.py::run start_in 'events/write'",
        "controller_manager/control/events/recorder.py::run start_in 'events/waiting'",
        "controller_manager/control/events/recorder.py::run start_in 'events/series'",
        "controller_manager/control/runner.py::run start '*/*'",
        "controller_manager/control/runner.py::run TaskGroup",
        "controller_manager/controllers/devicetainteviction/rules.py::run run_all",
        "controller_manager/controllers/garbagecollector/collector.py::run run_all",
        "controller_manager/controllers/nodelifecycle/controller.py::run run_all",
        "controller_manager/controllers/resourcequota/controller.py::run run_all",
        "controller_manager/controllers/storageversionmigrator/controller.py::run run_all",
        "controller_manager/kubelet/nodes.py::run run_all",
        "controller_manager/leaderelection/elector.py::run_without_lease start 'work'",
        "controller_manager/running.py::run start",
        "controller_manager/running.py::run start 'running'",
        "controller_manager/running.py::_run_all start",
        "controller_manager/supervision.py::start_in start",
        "mockube/embedded/control_plane.py::_run_manager TaskGroup",
        "mockube/embedded/control_plane.py::_run_manager start 'manager'",
    ),
    "tests/integration/test_manager_work.py::test_failed_creation_of_service_accounts_ends_manager": (
        "controller_manager/running.py::run start 'service-accounts'",
    ),
    "tests/integration/test_manager_planning.py::test_failed_wait_for_own_writes_ends_manager_and_is_named": (
        "controller_manager/control/runner.py::_park start_in '*/parked'",
    ),
    _CONTAINER: (
        "controller_manager/kubelet/processes/container_checks.py::run start 'a * probe'",
        "controller_manager/kubelet/processes/process_run.py::execute start 'output of a command'",
        "controller_manager/kubelet/processes/process_run.py::_run_process start 'output of a container'",
        "controller_manager/kubelet/processes/process_run.py::_run_process start 'checks of a container'",
        "controller_manager/kubelet/processes/process_run.py::_run_process start 'the end of a container'",
        'controller_manager/kubelet/processes/process_run.py::_run_process start "a container\'s process"',
    ),
    f"{_CONTAINERS}test_failed_end_of_pod_is_logged_and_leaves_no_process": (
        "controller_manager/kubelet/processes/runtime.py::forget start 'the end of a pod'",
    ),
    f"{_CONTAINERS}test_failed_update_of_volumes_is_tried_again": (
        "controller_manager/kubelet/processes/runtime.py::_start start 'container * of *'",
        "controller_manager/kubelet/processes/runtime.py::_start start 'volumes of *'",
    ),
    _EXEC: (
        "controller_manager/kubelet/server/attach.py::attach start 'input of a container'",
        "controller_manager/kubelet/server/process_streams.py::run_exec start 'input of a command'",
        "controller_manager/kubelet/server/process_streams.py::run_exec start 'sizes of a terminal'",
        "controller_manager/kubelet/server/process_streams.py::attach_to start 'sizes of a terminal'",
        "controller_manager/kubelet/server/process_streams.py::_copy_outputs start 'output of a command'",
        "controller_manager/kubelet/server/remote_command.py::_with_terminal start 'input of a terminal'",
    ),
    f"{_CONTAINERS}test_failed_simulated_container_ends_with_its_error": (
        "controller_manager/kubelet/server/interactive.py::_start start 'container * of *'",
    ),
    f"{_CONTAINERS}test_failed_task_of_simulated_handler_counts_as_its_failure": (
        "controller_manager/kubelet/server/live_handlers.py::_start start '* of *'",
    ),
    _FORWARDED: (
        "controller_manager/kubelet/server/port_forward.py::_add start 'a forwarded connection'",
        "controller_manager/kubelet/server/process_streams.py::connect_port start 'a connection to a process'",
        "controller_manager/kubelet/server/process_streams.py::connect_port start 'a connection from a process'",
    ),
    f"{_STREAMS}test_failed_task_of_forwarded_ports_ends_websocket": (
        "controller_manager/kubelet/server/port_forward.py::_serve_channels start 'a forwarded connection'",
        "controller_manager/kubelet/server/port_forward.py::_serve_channels start 'channels of a client'",
        "controller_manager/kubelet/server/port_forward.py::_serve_channels start 'forwarded connections'",
    ),
    f"{_STREAMS}test_failed_session_ends_its_connection_and_command": (
        "controller_manager/kubelet/server/sessions.py::start start",
    ),
    f"{_STREAMS}test_failed_task_of_exec_ends_it_over_spdy": (
        "controller_manager/kubelet/server/remote_command.py::_run start 'streams of a client'",
    ),
    "tests/integration/test_manager_leader.py::test_failed_renewal_cancels_work_and_releases_lease": (
        "controller_manager/leaderelection/elector.py::lead start 'lease'",
        "controller_manager/leaderelection/elector.py::lead start 'work'",
    ),
    _EVICTION: (
        "controller_manager/scheduler/preemption_executor.py::preempt start 'scheduler/preempt for *'",
        "controller_manager/scheduler/preemption_executor.py::_evict_all TaskGroup",
        "controller_manager/scheduler/preemption_executor.py::_evict_all start_in 'scheduler/evict'",
    ),
    "tests/integration/test_scheduler.py::test_failed_binding_is_logged_and_retried": (
        "controller_manager/scheduler/scheduler.py::_schedule start 'scheduler/bind *'",
    ),
    _PROCESS: (
        "controller_manager/serve.py::serve start 'manager'",
        "controller_manager/serve.py::serve start 'signals'",
    ),
    f"{_SUPERVISED}test_error_is_logged_once_with_traceback_and_tasks": (
        "controller_manager/supervision.py::start create_task",
        "controller_manager/supervision.py::start create_task 2",
    ),
    "tests/unit/controller_manager/test_run_all.py::test_failed_task_cancels_others": (
        "controller_manager/supervision.py::run_all start",
    ),
    f"{_SUPERVISED}test_failed_background_task_cancels_work": (
        "controller_manager/supervision.py::run_with create_task",
    ),
    f"{_SUPERVISED}test_work_is_cancelled_by_its_end": (
        "controller_manager/supervision.py::run_until create_task",
        "controller_manager/supervision.py::run_until create_task 2",
    ),
    f"{_STORE}test_failed_checkpoint_ends_store": (
        "etcd/embedded/checkpoint.py::__init__ DiskThread 'snapshot'",
        "etcd/embedded/durable.py::_start_sweep _spawn 'checkpoint'",
    ),
    f"{_STORE}test_errors_of_thread_reach_callers_or_log": (
        "etcd/embedded/disk.py::__init__ ThreadPoolExecutor",
        "etcd/embedded/disk.py::call run_in_executor",
    ),
    f"{_STORE}test_failed_group_commit_ends_store_and_fails_writes": (
        "etcd/embedded/group_commit.py::__init__ DiskThread 'log'",
        "etcd/embedded/group_commit.py::__init__ create_task 'group commit'",
    ),
    f"{_STORE}test_failed_expiry_of_leases_ends_store": (
        "etcd/embedded/store.py::_expire_leases _spawn 'expire leases'",
    ),
    f"{_STORE}test_rewrite_that_fails_after_its_caller_is_logged": (
        "etcd/embedded/store.py::_start create_task",
    ),
    f"{_WATCH}test_error_of_read_task_reaches_reader_and_closes_stream": (
        "etcd/remote/watch.py::__init__ create_task 'watch *'",
    ),
    f"{_WATCH}test_error_of_progress_request_reaches_reader": (
        "etcd/remote/watch.py::request_progress create_task",
    ),
    f"{_HOSTED}test_error_of_task_is_raised_at_end": (
        "mockube/embedded/background_loop.py::__init__ Thread",
    ),
    f"{_HOSTED}test_error_of_submitted_work_is_raised": (
        "mockube/embedded/background_loop.py::submit run_coroutine_threadsafe",
    ),
    "tests/unit/mockube/embedded/test_direct.py::test_failed_in_process_request_is_logged_and_cut": (
        "mockube/embedded/direct.py::_start create_task",
    ),
    "tests/integration/test_importing.py::test_unexpected_error_of_one_object_ends_import": (
        "mockube/importing/importer.py::_run_all TaskGroup",
        "mockube/importing/importer.py::_run_all create_task",
    ),
    f"{_RUN}test_failure_of_one_wait_is_raised_and_ends_others": (
        "mockube/processes/child_processes.py::wait_first create_task",
    ),
    _RESTARTS: (
        "mockube/processes/child_processes.py::running create_task 'restarts of the *'",
        "mockube/processes/child_processes.py::_run_once create_task 'begin of the *'",
    ),
    f"{_RUN}test_failed_import_is_raised": ("mockube/processes/control_plane.py::start_import create_task",),
    "tests/unit/mockube/processes/test_preimport_wait.py::test_failed_import_ends_program_with_traceback": (
        "mockube/processes/preimport.py::_main ThreadPoolExecutor",
    ),
}
TESTS = {site: test for test, sites in _BY_TEST.items() for site in sites}
"""For each start of a task or a thread, a test in which that task raises an unexpected error.

The test fails when the reaction to the error is removed: the task starts again, or the process ends with the error, or one
request, connection or object gets it. Before a new start is added here, its test is written and seen to fail.
"""

_BY_SUPERVISOR = {
    "the group raises its tasks' errors in a supervised task": (
        "apiserver/customresources/controller.py::run TaskGroup",
        "apiserver/customresources/controller.py::catch_up create_task 'clean up *'",
        "apiserver/http/server.py::accept TaskGroup",
        "apiserver/http/server.py::accept create_task 'accept connections'",
        "controller_manager/cache/informer.py::run TaskGroup",
        "controller_manager/cache/informer.py::_follow TaskGroup",
        "controller_manager/control/events/recorder.py::run TaskGroup",
        "controller_manager/control/runner.py::run TaskGroup",
        "controller_manager/scheduler/preemption_executor.py::_evict_all TaskGroup",
    ),
    "the tunnel ends with either direction, and logs the error": (
        "apiserver/http/exchanges.py::_pipe create_task 'from the client'",
        "apiserver/http/exchanges.py::_pipe create_task 'from the backend'",
    ),
    "the connection is closed, and the error is logged": (
        "apiserver/http/server.py::_open create_task 'a TLS handshake'",
        "apiserver/http/server.py::_open add_done_callback",
    ),
    "the watch ends, and the error is logged": (
        "apiserver/http/streams.py::begin create_task 'read the client of a watch'",
        "apiserver/request/watch.py::serve create_task 'send the events of a watch'",
    ),
    "the caller gets the error, or it is logged if the caller was cancelled": (
        "controller_manager/kubelet/pod_certificates.py::_request run_in_executor",
        "apiserver/event_loop.py::run run_in_executor",
        "etcd/embedded/disk.py::__init__ ThreadPoolExecutor",
        "etcd/embedded/disk.py::call run_in_executor",
        "apiserver/event_loop.py::run add_done_callback",
        "apiserver/event_loop.py::run add_done_callback 2",
        "etcd/embedded/rewriting.py::run add_done_callback",
        "etcd/embedded/rewriting.py::run add_done_callback 2",
    ),
    "the server's supervision restarts the task or ends the server": (
        "apiserver/supervision.py::running TaskGroup",
        "apiserver/supervision.py::_start create_task",
    ),
    "the manager's supervision logs the error and raises it in the caller or the group": (
        "controller_manager/supervision.py::start create_task",
        "controller_manager/supervision.py::start create_task 2",
        "controller_manager/supervision.py::start add_done_callback",
    ),
    "`run_with` raises its error": ("controller_manager/supervision.py::run_with create_task",),
    "`run_until` raises its error": (
        "controller_manager/supervision.py::run_until create_task",
        "controller_manager/supervision.py::run_until create_task 2",
    ),
    "the store fails: its task `supervise` raises the error": (
        "etcd/embedded/checkpoint.py::__init__ DiskThread 'snapshot'",
        "etcd/embedded/durable.py::_start_sweep _spawn 'checkpoint'",
        "etcd/embedded/group_commit.py::__init__ DiskThread 'log'",
        "etcd/embedded/group_commit.py::__init__ create_task 'group commit'",
        "etcd/embedded/store.py::_expire_leases _spawn 'expire leases'",
        "etcd/embedded/store.py::_start create_task",
        "etcd/embedded/group_commit.py::__init__ add_done_callback",
        "etcd/embedded/hub.py::publish call_soon",
        "etcd/embedded/store.py::_sweep call_soon",
        "etcd/embedded/store.py::_set_pack_timer call_later",
        "etcd/embedded/store.py::_set_lease_timer call_later",
        "etcd/embedded/store.py::_spawn add_done_callback",
        "etcd/embedded/store.py::_set_progress_timer call_later",
    ),
    "the reader of the watch gets the error": (
        "etcd/remote/watch.py::__init__ create_task 'watch *'",
        "etcd/remote/watch.py::request_progress create_task",
        "etcd/remote/watch.py::__init__ add_done_callback",
        "etcd/remote/watch.py::request_progress add_done_callback",
    ),
    "the thread that waits gets the error": (
        "mockube/embedded/background_loop.py::__init__ Thread",
        "mockube/embedded/background_loop.py::submit run_coroutine_threadsafe",
    ),
    "the group raises the error of the manager in the task of the cluster": (
        "mockube/embedded/control_plane.py::_run_manager TaskGroup",
    ),
    "the caller of the request gets the error": (
        "mockube/embedded/direct.py::_start create_task",
        "mockube/embedded/direct.py::_start add_done_callback",
    ),
    "the group raises a worker's error in the command": (
        "mockube/importing/importer.py::_run_all TaskGroup",
        "mockube/importing/importer.py::_run_all create_task",
    ),
    "the caller waits for it and gets the error": (
        "mockube/processes/child_processes.py::wait_first create_task",
        "mockube/processes/child_processes.py::running create_task 'restarts of the *'",
        "mockube/processes/child_processes.py::_run_once create_task 'begin of the *'",
        "mockube/processes/control_plane.py::start_import create_task",
        "mockube/processes/preimport.py::_main ThreadPoolExecutor",
    ),
    "it calls the event loop, for the callers listed here": ("apimachinery/clock.py::call_later call_later",),
    "the next timer is set first; the event loop logs the error": (
        "apiserver/interpreter_memory.py::age_and_repeat call_later",
        "apiserver/interpreter_memory.py::age_periodically call_later",
        "apiserver/http/server.py::connection_made call_later",
        "apiserver/http/server.py::_sweep call_later",
        "apiserver/request/watch.py::__init__ call_later",
        "apiserver/request/watch.py::__init__ call_later 2",
        "apiserver/request/watch.py::_schedule call_later",
    ),
    "aiohttp's own": ("apiserver/http/connection.py::_stay_open call_at",),
    "it only sets a result or an error": (
        "apiserver/http/connection.py::_drain_body call_later",
        "apiserver/storage/watch_cache.py::wait_reached call_later",
        "controller_manager/client/connections.py::exchange call_later",
        "controller_manager/kubelet/server/remote_command.py::run_when_complete call_later",
        "etcd/embedded/watch.py::_wait call_soon",
    ),
    "each request sets the timer that it needs; the event loop logs the error": (
        "apiserver/request/limits.py::_set_timer call_later",
    ),
    "it only ends a stream": (
        "apiserver/request/watch.py::serve call_later",
        "mockube/embedded/direct.py::stream call_later",
    ),
    "it only sets an event; a second signal has its default effect": (
        "apiserver/serve.py::_stop_signal_event add_signal_handler",
        "controller_manager/serve.py::_stop_signal_event add_signal_handler",
    ),
    "an error of the terminal is its end": (
        "controller_manager/kubelet/processes/pseudo_terminal.py::resume_reading add_reader",
    ),
    "the next key's timer is set in any case; the event loop logs the error": (
        "controller_manager/queue/workqueue.py::_set_timer call_later",
    ),
    "the event loop logs the error; the pod is tried again at the next change": (
        "controller_manager/scheduler/queue.py::_call_after call_later",
    ),
    "it only cancels a task": (
        "controller_manager/supervision.py::timeout call_later",
        "etcd/remote/clock.py::__enter__ call_later",
    ),
    "the thread logs the error": ("etcd/embedded/checkpoint.py::_write call_later",),
    "the event loop logs the error, and the command continues": (
        "mockube/cli/detach.py::_follow add_signal_handler",
        "mockube/cli/progress.py::_draw call_later",
        "mockube/clusters/supervisor.py::_run_once add_signal_handler",
        "mockube/processes/control_plane.py::handle_signals add_signal_handler",
        "mockube/processes/run_command.py::_run add_signal_handler",
    ),
    "it only stops the run": ("mockube/clusters/supervisor.py::_start_timeout call_later",),
    "the clock logs the error, and sets the next timer in any case": (
        "mockube/embedded/virtual_clock.py::_set_timer call_later",
    ),
    "the waiting caller gets the error": ("mockube/processes/control_plane.py::readiness_socket add_reader",),
}
SUPERVISORS = {site: supervisor for supervisor, sites in _BY_SUPERVISOR.items() for site in sites}
"""For each start by another call than those of a supervisor, and each function that the event loop calls, what becomes of its
error: the event loop itself only logs it.
"""
