"""A protocol of one idea: each line is a message for a queue, and comes back from there."""
