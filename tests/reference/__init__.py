"""Naive transcriptions of the paper's algorithms: the oracle of the tests.

Nothing here imports the package. Every number is recomputed from the users' sums with a fresh dense solve
whenever it is asked for. "Alg. k, line n" is the line number printed in the paper (arXiv source, algorithm2e
with `linesnumbered`): Alg. 1 UniCLUB, Alg. 2 PhaseUniCLUB, Alg. 3 UniSCLUB, Alg. 4 Split, Alg. 5 Merge.
AutoCLUB is ours, and follows its page in the documentation instead.
"""
