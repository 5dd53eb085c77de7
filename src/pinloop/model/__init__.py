"""What a robot is: description, graph, tree, pairs, mechanism; nothing here moves or solves."""
