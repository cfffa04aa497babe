"""
The verbs: each asks what it needs, has it told, and answers with an exit code.
"""
