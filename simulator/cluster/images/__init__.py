"""The images that the cluster's pods are made of: a base of Debian, ours on it, and two helpers."""
