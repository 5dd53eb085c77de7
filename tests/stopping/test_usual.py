"""What is taken where nothing is said: poses inside limits, speeds that loops allow, brakes."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import pinloop as pl
from pinloop.stopping.usual import brakes_beside, usual_brakes, usual_pose, usual_velocity

from ..known_linkages import PALLETIZER as _UNUSED  # noqa: F401
