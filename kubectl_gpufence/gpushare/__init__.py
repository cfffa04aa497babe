"""
`kubectl inspect gpushare`: what the program of that name always printed, byte for byte, and with
`--used` what it never knew: the memory that is really held.

Its rules, odd ones among them, are those of cmd/inspect in gpushare-device-plugin. Where that
prints nodes and cards in no order, here they are in theirs.
"""
