"""Syncs of upstream into downstream: plan, audit, restore, and git drivers that keep goldens whole.

Each part is loaded by name: git starts the drivers once a file.
"""
