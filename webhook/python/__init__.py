"""Holds the start-up hook that runs inside the user's Python interpreter."""
