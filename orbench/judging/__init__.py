"""Kinds of judges, their verdicts, panels of several, and how far a judge agrees with people."""
