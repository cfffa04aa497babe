"""
What each framework makes of its environment: read here from how the frameworks behave, never from
the webhook's own table, so that a mistake there shows as a workload that breaks its limit.
"""
