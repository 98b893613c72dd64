"""Operators under test: their processes, and the objects that they leave.

A module belongs here if several commands need it that run operators of users. It knows no scenario and no judgement.
"""
