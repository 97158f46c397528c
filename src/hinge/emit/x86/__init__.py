"""Straight-line programs as machine code of x86 CPUs with AVX-512, without LLVM."""
