"""Record Kubernetes Events: aggregate repeated ones, and write them in the background.

A module belongs here if it determines which Event is written for an occurrence, or writes it.
"""
