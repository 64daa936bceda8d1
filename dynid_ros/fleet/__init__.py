"""Many arms, many recordings: identified job by job, resumed where it was interrupted, compared with each other."""
