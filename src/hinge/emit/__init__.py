"""From a program to code.  `interpret` is the definition; the others must match it."""
