"""
The kubectl plugin: declared, injected and measured, side by side.
"""
