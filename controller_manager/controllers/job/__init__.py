"""Jobs: pods that are to succeed a number of times, counted exactly.

A module belongs here if it decides something for them; it reads caches and answers with plans. Upstream:
pkg/controller/job.
"""
