"""From motion algebras to the sufficient constraint equations; diagnosis of mechanisms."""
