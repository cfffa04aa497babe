"""
What every program of ours that runs for long does alike: its log, the addresses it listens on,
and the pages it serves there.
"""
