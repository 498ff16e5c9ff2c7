"""Offline evaluation: the reward that a policy would have got, estimated from a log of another policy."""

from coterie.evaluation.bootstrap import Interval, bca_interval
from coterie.evaluation.decision_service_json import read_dsjson
from coterie.evaluation.estimates import Estimate, Evaluation, evaluate
from coterie.evaluation.estimators import ESTIMATORS
from coterie.evaluation.log import Log
from coterie.evaluation.log_reader import read_log
from coterie.evaluation.logging_policy import LoggingPolicy
from coterie.evaluation.open_bandit import log_from_obp
from coterie.evaluation.verdict import PairedDifference

__all__ = [
    "ESTIMATORS",
    "Estimate",
    "Evaluation",
    "Interval",
    "Log",
    "LoggingPolicy",
    "PairedDifference",
    "bca_interval",
    "evaluate",
    "log_from_obp",
    "read_dsjson",
    "read_log",
]
