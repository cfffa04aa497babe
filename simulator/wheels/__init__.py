"""
Unmodified wheels of frameworks, each in an environment of its own, run on simulated cards.

`catalog` says which there are, `install` builds and removes them in the user's cache, `launch` says
how a program of one is started so that it takes the simulated driver for a card's.
"""
