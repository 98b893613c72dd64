"""CronJobs: a Job at each time of a schedule.

A module belongs here if it decides something for them; it reads caches and answers with plans. Upstream:
pkg/controller/cronjob.
"""
