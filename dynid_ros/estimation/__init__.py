"""Statistics of linear models: least squares with rank, covariance, intervals, jackknife, robust weights, consistency."""
