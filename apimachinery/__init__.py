"""The language both processes speak.

A module belongs here if the API server and the controller manager would otherwise each write it. It is pure: no I/O,
no event loop, no state kept between calls but what is remembered to save time; `clock.py` and `randomness.py` alone touch
the outside, so that nothing else has to.
"""
