"""
What every program of ours that runs for long does alike: its log, and the addresses it listens on.
"""
