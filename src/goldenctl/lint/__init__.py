"""Lint rules of golden files: one small pure function a rule."""
