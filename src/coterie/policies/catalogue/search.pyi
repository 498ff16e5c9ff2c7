from coterie.policies.catalogue.compressed_rows import CompressedRows
from coterie.policies.kernel.learner import Learner
from coterie.types import Floats, Ints

def best_rows(
    learner: Learner,
    user: int,
    compressed: CompressedRows,
    vectors: Floats,
    ids: Ints,
    rows: Ints | None,
    k: int,
) -> Ints | None: ...
def score_bounds(
    learner: Learner,
    user: int,
    compressed: CompressedRows,
    vectors: Floats,
    ids: Ints,
    sharply: bool = False,
) -> Floats | None: ...
