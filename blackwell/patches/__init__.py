"""The patch series of a release as its maintainer works on it: checked, edited as commits, written back."""
