"""Programs as LLVM text."""
