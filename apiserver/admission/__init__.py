"""What may change or refuse a write between its decoding and its storing.

A module belongs here if it is one admission plugin, or the chain that runs them. `chain.py` lists the plugins in
upstream's order.
"""
