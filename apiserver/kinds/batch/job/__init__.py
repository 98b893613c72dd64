"""Job: `job.py` has its record, the other modules its validation.

A module belongs here if it describes Jobs.

    validation           Jobs, and the Job templates of CronJobs
    status_validation    the status
    policies             pod failure and success policies
    indexes              lists of indexes, such as `0,2-4`
"""
