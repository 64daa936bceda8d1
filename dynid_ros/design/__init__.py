"""The search for the Fourier motion that tells most, within limits and workspace."""
