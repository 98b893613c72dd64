"""Named clusters on this machine. A module belongs here if it finds, inspects or runs them."""
