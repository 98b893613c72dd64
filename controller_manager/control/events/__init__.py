"""Record Kubernetes Events: aggregate repeated ones, and write them beside the work.

A module belongs here if it decides which Event is written for something that happened.
"""
