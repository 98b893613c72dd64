"""Checks of objects against API servers of several minor releases, before they are applied to a cluster.

A file belongs here if it finds the objects of files and charts, runs the servers, or interprets and prints what they answer.
"""
