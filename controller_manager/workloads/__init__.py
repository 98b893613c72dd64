"""What controllers that own pods share: views, ranking, revisions, hashes. Pure."""
