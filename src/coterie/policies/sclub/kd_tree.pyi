from coterie.types import Floats

class Tree:
    passed: int
    @property
    def nbytes(self) -> int: ...

def found_near(planted: Floats, points: Floats, reaches: Floats, factor: float) -> list[list[int]]: ...
