"""Programs as kernels of NVIDIA's cards, by way of LLVM's NVPTX target."""
