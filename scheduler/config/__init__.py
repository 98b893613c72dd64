"""The configuration of the scheduler, as KubeSchedulerConfiguration has it.

A module belongs here if it reads or checks what users configure; `profiles` builds what runs from it.
"""
