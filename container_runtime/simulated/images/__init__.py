"""The images that simulated containers know: what runs in them, their files, their ports."""
