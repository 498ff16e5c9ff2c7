from coterie.policies._autoclub_rows import EvidenceRows

class ByEvidence(EvidenceRows):
    def likeliest(self, user: int) -> tuple[list[int], int]: ...
