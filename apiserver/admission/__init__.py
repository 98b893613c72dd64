"""Admission: plugins that change or reject a write after it is decoded and before it is stored.

A module belongs here if it is one admission plugin, the chain that runs them, or the records of their configurations.
`chain.py` lists the plugins in upstream's order.
"""
