"""Kill the process anywhere, start it again: nothing lost, nothing counted twice."""
