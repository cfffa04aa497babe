"""
PURE. `top`: who holds how much of which card, beside what was declared and injected.
"""
