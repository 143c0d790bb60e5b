"""Fit Byheart into the frameworks in which agents are built; each module needs its framework.

docs/integrations.md lists the extras that install the frameworks.
"""
