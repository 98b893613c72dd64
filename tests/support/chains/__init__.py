"""Chains of certificates with every kind of defect, and the recorder of what Go says of each.

A module belongs here if it builds certificates that no usual library would sign, or records Go's answers.
"""
