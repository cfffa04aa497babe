"""
`kubectl gpufence`: what was declared, what was injected and what is measured, side by side.

Every verb is a package or module with `run`: it has `ask` read what it needs, makes rows or
sentences of that in pure functions, and writes them to an `Output`.
"""
