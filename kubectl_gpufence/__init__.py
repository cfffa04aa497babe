"""
`kubectl gpufence`: what was declared, what was injected and what is measured, side by side.

Every verb is a folder or module of `verbs`, with what can be typed and `run`: it has `reader` read
what it needs, makes rows or sentences of that in pure functions, and writes them to an `Output`.
"""
