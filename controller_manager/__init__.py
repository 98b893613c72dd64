"""The controller manager.

A module belongs here if it watches objects and acts on them, over HTTP alone.
"""
