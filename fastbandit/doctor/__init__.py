"""What is wrong or slow with an installation, and what to do about it."""

from fastbandit.doctor.examination import examine
from fastbandit.doctor.finding import Finding, State

__all__ = ["Finding", "State", "examine"]
