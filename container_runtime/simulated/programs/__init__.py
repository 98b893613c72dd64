"""The commands of simulated containers: what they do, how long they run, and what they log."""
