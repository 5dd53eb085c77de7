"""What a robot is: description, graph, tree, pairs, mechanism. Nothing here moves or solves."""
