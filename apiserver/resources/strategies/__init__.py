"""Where a resource is not like every other.

A module belongs here if it holds the strategies of one API group or, where they are much, of one resource. What all
resources do is in `rest/`; what is filled in or refused is in `defaults/` and `validation/`.
"""
