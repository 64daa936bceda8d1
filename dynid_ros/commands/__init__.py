"""The commands of `dynid`: their options, and the jobs that these describe."""
