"""What is true of volumes and claims whoever asks: names, who is bound to whom, which volume fits.

A module belongs here if both controllers and the simulation ask it, and it is pure.
"""
