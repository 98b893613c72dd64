"""Job: `job.py` has its record, the other modules its validation.

A module belongs here if it describes Jobs.

    validation   new Jobs, and templates of them    update_validation, status_validation   what may change
    policies     pod failure and success policies   indexes                                `0,2-4`
"""
