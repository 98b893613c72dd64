"""The controller of CronJobs: it creates a Job at each time of a schedule.

A module belongs here if it is part of this controller. It reads caches and returns plans. Upstream:
pkg/controller/cronjob.
"""
