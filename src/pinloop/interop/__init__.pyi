from .to_pinocchio import PinocchioModels as PinocchioModels
from .to_pinocchio import to_pinocchio as to_pinocchio
