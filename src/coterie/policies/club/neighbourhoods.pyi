from coterie.policies.club.components import CuttingGraph

class Neighbourhoods(CuttingGraph):
    n_neighbourhoods: int
