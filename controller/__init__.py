"""The optional program that releases claimed GPUs nobody uses, and answers how busy an owner is."""
