"""Learning filters from codes: additive statistics and the update. Codes come from `solvers`, joined in `learners`."""
