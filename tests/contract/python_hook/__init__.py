"""
The start-up hook in fresh interpreters, beside stand-ins with the interfaces of the frameworks.
"""
