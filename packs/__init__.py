"""The packs that come with mockube, a folder for each: kinds of other projects, with their webhooks and controllers.

A folder belongs here if it is a pack, with its `Pack` in `pack.py`: `component_base/packs.py` finds it by its name. It may
import every other package but `mockube` itself, and none imports it.
"""
