"""Named clusters on this machine. A file belongs here if it knows where such a one lies, whether it runs, or how it is kept running."""
