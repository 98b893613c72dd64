"""What expressions cost: an estimate of the worst case before they run, and the price of each call while they do.

The units are cel-go's: one for a step, a tenth for a character that is read. A module belongs here if it knows a cost.
"""
