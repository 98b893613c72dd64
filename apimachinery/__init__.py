"""What the API server and the controller manager share.

A module belongs here if the API server and the controller manager would otherwise each write it. It is pure: no I/O,
no event loop, no state kept between calls but caches; `clock.py` and `randomness.py` alone touch
the outside, so that nothing else has to.
"""
