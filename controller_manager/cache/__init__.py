"""Keep objects at hand: reflectors list and watch, informers share what they deliver, stores index it.

A module belongs here if it turns watch events into what controllers read. It starts no work on an object.
"""
