"""Laws of joint forces: functions τ(t, q, q̇) that simulation takes and kernels swallow."""

from . import space
from .diagonal import PoseFeedback, RateFeedback

__all__ = ["PoseFeedback", "RateFeedback", "space"]
