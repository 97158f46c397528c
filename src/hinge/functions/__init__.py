"""Functions of arrays as kernels: compiled, differentiated, run many times."""
