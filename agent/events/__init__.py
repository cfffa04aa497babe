"""PURE. What people are told, in one line each: the sentences, whom they concern, and how often."""
