from coterie.types import Floats, Ints

def distinct(uniforms: Floats, n_items: int) -> Ints: ...
def looked_up(table: Floats, rows: Ints, picks: Ints) -> Floats: ...
def blurred(
    items: Floats,
    behind: Ints,
    normals: Floats,
    spare: Floats,
    sigma: float,
    edge: float,
    arms: Floats,
) -> bool: ...
def products(arms: Floats, picks: Ints, preferences: Floats, rows: Ints) -> Floats: ...
