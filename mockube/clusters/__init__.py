"""Named clusters on this machine. A module belongs here if it finds one, reports whether it runs, or keeps it running."""
