"""Caches of objects: reflectors list and watch, informers share what they deliver, stores index it.

A module belongs here if it turns watch events into what controllers read. It does not reconcile objects.
"""
