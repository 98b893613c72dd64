"""Run controllers: changes become keys, a worker reconciles each key, an executor carries out the plan.

A module belongs here if every controller needs it and no controller is named in it.
"""
