"""Caches of objects: reflectors list and watch a resource, informers share its objects, stores index them.

A module belongs here if it turns watch events into the caches that controllers read. It does not reconcile objects.
"""
