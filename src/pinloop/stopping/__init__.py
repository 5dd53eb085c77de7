"""Stop analysis: what a robot does after its power has gone and its brakes have been commanded."""
