from coterie.policies._autoclub_users import Histories

class Memberships(Histories):
    n_clusters: int
    bar: float
