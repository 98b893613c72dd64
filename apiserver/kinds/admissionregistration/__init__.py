"""The kinds of admissionregistration.k8s.io.

A module belongs here if it describes some of them, or what they share.
"""
