"""
`kubectl gpufence`: what was declared, what was injected and what is measured, side by side.

Asking is one thing and telling another: `cluster` asks the API server and the agents, everything
that makes tables and sentences of the answers is pure.
"""
