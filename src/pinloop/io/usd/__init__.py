"""USD stages with `UsdPhysics`, read to a `Description`; usd-core is imported when it is needed."""
