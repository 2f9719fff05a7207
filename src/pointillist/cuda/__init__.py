"""Kernels for CUDA devices: what is computed where (`plan`), on which device (`device`), and how (`engine`, `sums`).

The kernels are CUDA C++ that the driver's NVRTC compiles at the first use of a filter size, through CuPy, which is imported
only when a device is asked for. `plan` is plain Python and needs neither.
"""
