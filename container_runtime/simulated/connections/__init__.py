"""The connections of simulated containers: which are open, and what they answer."""
