from .to_pinocchio import PinocchioModels, to_pinocchio

__all__ = ["PinocchioModels", "to_pinocchio"]
