"""Exact functional ANOVA of any model with categorical inputs."""
