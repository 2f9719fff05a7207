"""The paper's figures and tables, repeated with this package: numbers, verdicts and a report.

J. Xiong, P. Richtárik and W. Heidrich, *Stochastic Convolutional Sparse Coding*, Vision, Modeling and Visualization, 2019.
"""

from paper.report import FIGURES, redraw, reproduce

__all__ = ["FIGURES", "reproduce", "redraw"]
