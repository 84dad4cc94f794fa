"""Looking into programs while they run: positions, states, steps forward and backward, stops."""

from vc4lab.debug.expressions import ExpressionError as ExpressionError
from vc4lab.debug.session import Session as Session
from vc4lab.debug.stops import Cause as Cause
from vc4lab.debug.stops import Stop as Stop
