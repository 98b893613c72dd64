"""The kinds of batch.

A module belongs here if it describes one of them or a part of one.
"""
