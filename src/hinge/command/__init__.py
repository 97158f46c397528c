"""The commands of `hinge`, a module each: `add` makes its parser, `run` does what was asked for."""
