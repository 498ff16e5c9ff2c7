"""What to cite: the works that policies come from, as BibTeX."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from coterie.experiments.specs import PolicySpec


class Work(NamedTuple):
    """A publication: its key, authors, title, where it appeared and when.

    `is_checked` says whether the entry was compared with the list of references of another publication.
    """

    key: str
    authors: str
    title: str
    venue: str
    year: int
    is_checked: bool = True

    def bibtex(self) -> str:
        """An entry of a bibliography; software and preprints have no proceedings."""
        kind, place = (
            ("misc", "howpublished") if self.venue in UNPUBLISHED else ("inproceedings", "booktitle")
        )
        fields = {"author": self.authors, "title": f"{{{self.title}}}", place: self.venue, "year": self.year}
        lines = [f"  {name} = {{{value}}}," for name, value in fields.items()]
        doubt = [] if self.is_checked else [f"% {self.key}: written from memory, compare it with the paper."]
        return "\n".join([*doubt, f"@{kind}{{{self.key},", *lines, "}"])


UNPUBLISHED = ("Software", "arXiv:2505.19043")
SOFTWARE = Work("coterie", "{The Coterie authors}", "Coterie: online clustering of bandits", "Software", 2026)
LINUCB = Work(
    "abbasi2011improved",
    "Abbasi-Yadkori, Yasin and P{\\'a}l, D{\\'a}vid and Szepesv{\\'a}ri, Csaba",
    "Improved Algorithms for Linear Stochastic Bandits",
    "Advances in Neural Information Processing Systems",
    2011,
)
LINTS = Work(
    "agrawal2013thompson",
    "Agrawal, Shipra and Goyal, Navin",
    "Thompson Sampling for Contextual Bandits with Linear Payoffs",
    "International Conference on Machine Learning",
    2013,
)
CLUB = Work(
    "gentile2014online",
    "Gentile, Claudio and Li, Shuai and Zappella, Giovanni",
    "Online Clustering of Bandits",
    "International Conference on Machine Learning",
    2014,
)
SCLUB = Work(
    "li2019improved",
    "Li, Shuai and Chen, Wei and Li, Shuai and Leung, Kwong-Sak",
    "Improved Algorithm on Online Clustering of Bandits",
    "International Joint Conference on Artificial Intelligence",
    2019,
)
UNICLUB = Work(
    "li2025demystifying",
    "Li, Zhuohua and Liu, Maoli and Dai, Xiangxiang and Lui, John C.S.",
    "Demystifying Online Clustering of Bandits: Enhanced Exploration Under Stochastic and Smoothed "
    "Adversarial Contexts",
    "International Conference on Learning Representations",
    2025,
)
MISSPECIFIED_USERS = Work(
    "wang2023online",
    "Wang, Zhiyong and Xie, Jize and Liu, Xutong and Li, Shuai and Lui, John C.S.",
    "Online Clustering of Bandits with Misspecified User Models",
    "Advances in Neural Information Processing Systems",
    2023,
    is_checked=False,
)
OFFLINE_CLUSTERS = Work(
    "liu2025offline",
    "Liu, Jingyuan and Zhang, Zeyu and Wang, Xuchuang and Liu, Xutong and Lui, John C.S. and "
    "Hajiesmaili, Mohammad and Joe-Wong, Carlee",
    "Offline Clustering of Linear Bandits: The Power of Clusters under Limited Data",
    "arXiv:2505.19043",
    2025,
    is_checked=False,
)

WORKS: Mapping[str, Work] = MappingProxyType(
    {
        **dict.fromkeys(("AutoCLUB", "HierUCB", "HierTS", "ItemUCB", "ItemTS"), SOFTWARE),
        **dict.fromkeys(("LinUCBOne", "LinUCBInd", "LinUCBOracle"), LINUCB),
        **dict.fromkeys(("LinTSOne", "LinTSInd", "LinTSOracle"), LINTS),
        "CLUB": CLUB,
        **dict.fromkeys(("SCLUB", "SCLUB2019"), SCLUB),
        **dict.fromkeys(("UniCLUB", "PhaseUniCLUB", "UniSCLUB", "SACLUB", "SASCLUB"), UNICLUB),
        **dict.fromkeys(("RCLUMB", "RSCLUMB"), MISSPECIFIED_USERS),
        "RCLUBWCU": Work(
            "wang2023corrupted",
            "Wang, Zhiyong and Xie, Jize and Yu, Tong and Li, Shuai and Lui, John C.S.",
            "Online Corrupted User Detection and Regret Minimization",
            "Advances in Neural Information Processing Systems",
            2023,
        ),
        "DynUCB": Work(
            "nguyen2014dynamic",
            "Nguyen, Trong T. and Lauw, Hady W.",
            "Dynamic Clustering of Contextual Multi-Armed Bandits",
            "ACM International Conference on Information and Knowledge Management",
            2014,
        ),
        "DyClu": Work(
            "li2021unifying",
            "Li, Chuanhao and Wu, Qingyun and Wang, Hongning",
            "Unifying Clustered and Non-stationary Bandits",
            "International Conference on Artificial Intelligence and Statistics",
            2021,
        ),
        "CoDBand": Work(
            "li2021when",
            "Li, Chuanhao and Wu, Qingyun and Wang, Hongning",
            "When and Whom to Collaborate with in a Changing Environment: A Collaborative Dynamic Bandit "
            "Solution",
            "ACM SIGIR Conference on Research and Development in Information Retrieval",
            2021,
        ),
        "LOCB": Work(
            "ban2021local",
            "Ban, Yikun and He, Jingrui",
            "Local Clustering in Contextual Multi-Armed Bandits",
            "The Web Conference",
            2021,
        ),
        "CAB": Work(
            "gentile2017context",
            "Gentile, Claudio and Li, Shuai and Kar, Purushottam and Karatzoglou, Alexandros and Zappella, "
            "Giovanni and Etrue, Evans",
            "On Context-Dependent Clustering of Bandits",
            "International Conference on Machine Learning",
            2017,
        ),
        "COFIBA": Work(
            "li2016collaborative",
            "Li, Shuai and Karatzoglou, Alexandros and Gentile, Claudio",
            "Collaborative Filtering Bandits",
            "ACM SIGIR Conference on Research and Development in Information Retrieval",
            2016,
        ),
        "CascadeLinUCB": Work(
            "zong2016cascading",
            "Zong, Shi and Ni, Hao and Sung, Kenny and Ke, Nan Rosemary and Wen, Zheng and Kveton, Branislav",
            "Cascading Bandits for Large-Scale Recommendation Problems",
            "Conference on Uncertainty in Artificial Intelligence",
            2016,
        ),
        "CLUBCascade": Work(
            "li2018online",
            "Li, Shuai and Zhang, Shengyu",
            "Online Clustering of Contextual Cascading Bandits",
            "AAAI Conference on Artificial Intelligence",
            2018,
        ),
        **dict.fromkeys(("OffCLUB", "OffC2LUB"), OFFLINE_CLUSTERS),
        "FCLUBDC": Work(
            "liu2022federated",
            "Liu, Xutong and Zhao, Haoru and Yu, Tong and Li, Shuai and Lui, John C.S.",
            "Federated Online Clustering of Bandits",
            "Conference on Uncertainty in Artificial Intelligence",
            2022,
            is_checked=False,
        ),
        "COLDB": Work(
            "wang2025online",
            "Wang, Zhiyong and Sun, Jiahang and Kong, Mingze and Xie, Jize and Hu, Qinghao and Lui, "
            "John C.S. and Dai, Zhongxiang",
            "Online Clustering of Dueling Bandits",
            "International Conference on Machine Learning",
            2025,
            is_checked=False,
        ),
        "GOBLin": Work(
            "cesabianchi2013gang",
            "Cesa-Bianchi, Nicol{\\`o} and Gentile, Claudio and Zappella, Giovanni",
            "A Gang of Bandits",
            "Advances in Neural Information Processing Systems",
            2013,
        ),
        "GraphUCB": Work(
            "yang2020laplacian",
            "Yang, Kaige and Toni, Laura and Dong, Xiaowen",
            "Laplacian-Regularized Graph Bandits: Algorithms and Theoretical Analysis",
            "International Conference on Artificial Intelligence and Statistics",
            2020,
        ),
    }
)
"""The work that a policy comes from."""


def bibliography(specs: Iterable[PolicySpec]) -> str:
    """Entries of BibTeX for everything that a comparison of these policies should cite.

    >>> print(bibliography([PolicySpec("CLUB")]).splitlines()[6])
    @inproceedings{gentile2014online,
    """
    works = [WORKS[spec.name] for spec in specs if spec.name in WORKS]
    return "\n".join(work.bibtex() for work in dict.fromkeys([SOFTWARE, *works])) + "\n"
