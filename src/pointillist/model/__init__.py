"""The mathematics of the problem: geometry, filters, sparse codes, sampling, objective and duality gap."""
