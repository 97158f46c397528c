"""From a mechanism and an algorithm to a program."""
