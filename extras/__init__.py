"""The extras, a folder for each: what not everybody needs, a distribution of its own that plugs in by entry points.

A folder belongs here if no other package imports it. No distribution contains this file: each adds its own folder.
"""
