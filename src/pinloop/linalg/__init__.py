"""Small dense algebra of any rank: saddle problem, LAPACK, factors; no robot is known here."""
