"""The contents of a simulated container: its program, its environment, its files, and its log up to a time.

A module belongs here if it computes from a pod, from the objects that the pod refers to, and from the time; it uses no
connection.
"""
