"""From motion algebras to the constraint equations that suffice; no forces, no time."""
