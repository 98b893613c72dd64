"""Workloads: kinds that make pods of templates.

A module belongs here if it holds the rules of one such kind, or what several of them are checked with. The templates
themselves are in `pods/`.

    selected      a template and the selector that must find its pods      counts   numbers in statuses
    controllers   ReplicationController     replica_sets, deployments, stateful_sets, daemon_sets, revisions   apps
    jobs, cron_jobs                         batch, with   job_policies, job_status, indexes, schedules
"""
