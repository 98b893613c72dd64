"""Admission: plugins that change or reject a write after it is decoded and before it is stored.

A module belongs here if it is one admission plugin, or the chain that runs them. `chain.py` lists the plugins in
upstream's order.
"""
