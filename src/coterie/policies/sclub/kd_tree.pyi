from coterie.types import Floats

class Tree:
    visited: int
    @property
    def nbytes(self) -> int: ...

def found_near(built_from: Floats, points: Floats, reaches: Floats, factor: float) -> list[list[int]]: ...
