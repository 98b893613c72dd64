"""Run controllers: map changes to keys, reconcile each key by a worker, execute the resulting plan.

A module belongs here if every controller needs it and no controller is named in it.
"""
