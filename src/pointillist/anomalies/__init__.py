"""Anomalies of signals, judged by a learned model: scores for every sample, and the events that stand out.

Codes are solved for by the learner; here they are only judged. Drawing the scores is left to the reports.
"""

from pointillist.anomalies.scoring import AnomalyScore, anomaly_score
from pointillist.anomalies.windows import learn_windows, remove_baseline

__all__ = ["AnomalyScore", "anomaly_score", "learn_windows", "remove_baseline"]
