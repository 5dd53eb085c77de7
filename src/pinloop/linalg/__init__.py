"""Small dense algebra of any rank: the saddle problem, LAPACK, square roots. Knows no robot."""
