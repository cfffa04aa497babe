"""What the documentation tells people to type, typed."""
